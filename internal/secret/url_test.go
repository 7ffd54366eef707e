package secret

import (
	"strings"
	"testing"
)

func TestURL(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"redis://h:1/2":            "redis://h:1/2",
		"redis://":                 "redis://",
		"redis://[::1]:7/3":        "redis://[::1]:7/3",
		"redis://u:p@h:1/2":        "redis://u:…@h:1/2",
		"redis://:p@h":             "redis://:…@h",
		"redis://u:p@q@h":          "redis://u:…@h",
		"redis://secret@h":         "redis://…@h",
		"redis://:secret":          "redis://…",
		"redis://user:secret":      "redis://…",
		"redis://sec ret":          "redis://…",
		"redis://:42/secret":       "redis://:42/…",
		"redis://:42/secret@h":     "redis://…",
		"redis://u:secret?x@h":     "redis://…",
		"redis://u:secret#x@h/0":   "redis://…",
		"redis://h/0?password=a@b": "redis://…",
		"redis-sentinel://u:p@h:1,i/m/0?sentinel_password=p&read_timeout=1s": "redis-sentinel://u:…@h:1,i/m/0?sentinel_password=…&read_timeout=1s",
		"redis://h?sentinel_password=a&secret":                               "redis://h?sentinel_password=…&…",
		"redis://h?pass=secret&auth=secret&%70assword=secret&db=3":           "redis://h?…&…&…&db=3",
		"redis-cluster://a:1,b:secret":                                       "redis-cluster://…",
		"http://u:p@h":                                                       "…",
		"u://secret:@h":                                                      "…",
		"://secret:@h":                                                       "…",
		"se cret://h":                                                        "…",
		"u:p@h":                                                              "…@h",
		"u:p@h@i":                                                            "…",
		"h:1":                                                                "h:1",
		"u:secret":                                                           "…",
		"secret":                                                             "…",
		"":                                                                   "",
		"sqlite:///var/a.db?key=secret":                                      "sqlite:///var/a.db?…",
		"postgres://u:secret":                                                "postgres://…",
		"postgres://u:secret/5":                                              "postgres://…",
		"postgres://u:5secret?x":                                             "postgres://…",
		"postgresql://a:1,u:secret/d":                                        "postgresql://…",
		"postgres://h:5432/d":                                                "postgres://h:5432/d",
		"postgres://a:1,b/d?x=1":                                             "postgres://a:1,b/d?…",
		"postgres://[::1]:5432/d":                                            "postgres://[::1]:5432/d",
		"postgres:///d":                                                      "postgres:///d",
		"postgres://u:secret@h:x/d":                                          "postgres://u:…@…",
	} {
		if got := URL(url); got != want {
			t.Errorf("URL(%q) = %q, want %q", url, got, want)
		}
	}
}

// FuzzURL checks that URL shows no part of the text between a colon and the last @.
func FuzzURL(f *testing.F) {
	for _, url := range []string{"redis://u:%s@h/0", "redis://:%s@h:1?db=3", "redis-sentinel://u:%s@a,b:1/m", "u:%s@h", "redis://h?password=%s"} {
		f.Add(url, "hunter2")
	}
	f.Fuzz(func(t *testing.T, url, password string) {
		if strings.HasPrefix(password, "//") && !strings.Contains(url, "://") {
			return // behind the name of a scheme that is a URL, with another password
		}
		if len(password) < 4 || strings.Count(url, "%s") != 1 || strings.Contains(strings.ReplaceAll(url, "%s", ""), password) {
			return
		}
		at := strings.Index(url, "%s")
		if before := url[:at]; !strings.HasSuffix(before, ":") || strings.Contains(url[at:], "=") || !strings.Contains(url[at:], "@") || strings.ContainsAny(before, "@/?#") && !strings.HasSuffix(before, "://:") {
			return
		}
		if got := URL(strings.Replace(url, "%s", password, 1)); strings.Contains(got, password) {
			t.Errorf("%q shows the password %q", got, password)
		}
	})
}
