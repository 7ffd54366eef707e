package api

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"
)

// A moment that a person may write is answered for or refused, also where its local time has no year that JSON can write.
func TestMoments_thatJSONCannotWrite(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{})
	for _, at := range []string{
		"9999-12-31T23:59:59.999Z", "9999-12-31T15:00:00Z", "9999-12-30T12:00:00Z", "9999-12-31T23:59:59-14:00", "9999-12-31T00:00:00+23:59",
		"2030-01-31T09:00:00+24:00", "2030-01-31T09:00:00-24:59", "1970-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "0000-01-01T00:00:00Z", "9999-12-31",
	} {
		for _, zone := range []string{"UTC", "Pacific/Kiritimati", "Etc/GMT+12", "Asia/Tokyo"} {
			for _, rule := range []string{"cron=* * * * * *", "every=1h&jitter=1h", "cron=0 0 31 12 *&jitter=36500d"} {
				q, _ := url.ParseQuery(rule)
				cron := fmt.Sprintf(`"cron":%q,"timezone":%q`, q.Get("cron"), zone)
				if q.Get("cron") == "" {
					cron = fmt.Sprintf(`"every":%q`, q.Get("every"))
				} else {
					q.Set("timezone", zone)
				}
				for _, name := range []string{"from", "until", "start"} {
					q := with(q, name, at)
					ok(t, s, http.MethodGet, "/v1/preview?"+q, "")
				}
				jitter := ""
				if q.Get("jitter") != "" {
					jitter = fmt.Sprintf(`,"jitter":%q`, q.Get("jitter"))
				}
				for _, field := range []string{"start", "until"} {
					ok(t, s, http.MethodPut, "/v1/schedules/s", fmt.Sprintf(`{%s,"task":"echo",%q:%q%s}`, cron, field, at, jitter))
					ok(t, s, http.MethodGet, "/v1/schedules/s", "")
					ok(t, s, http.MethodGet, "/v1/schedules/s/slots?from="+url.QueryEscape(at), "")
					ok(t, s, http.MethodGet, "/v1/schedules", "")
					ok(t, s, http.MethodGet, "/v1/schedules/s/revisions", "")
				}
			}
		}
		for _, path := range []string{"/v1/beat?from=", "/v1/audit?since=", "/v1/events?since=", "/v1/runs?from="} {
			ok(t, s, http.MethodGet, path+url.QueryEscape(at), "")
		}
		ok(t, s, http.MethodPost, "/v1/tasks", fmt.Sprintf(`{"type":"echo","at":%q}`, at))
		ok(t, s, http.MethodPost, "/v1/schedules/s/backfill", fmt.Sprintf(`{"from":%q,"dry_run":true}`, at))
		ok(t, s, http.MethodGet, "/v1/tasks", "")
	}
}

func with(q url.Values, name, value string) string {
	all, _ := url.ParseQuery(q.Encode())
	all.Set(name, value)
	return all.Encode()
}

// ok fails if a request is answered with a failure of the server.
func ok(t *testing.T, s *service, method, path, body string) {
	t.Helper()
	if code, _, text := s.call(method, path, body); code >= 500 {
		t.Errorf("%s %s %s: %d %s", method, path, body, code, text)
	}
}
