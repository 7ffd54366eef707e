package notify

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/internal/sign"
	"github.com/onbeat/onbeat/task"
)

// receiver is an httptest server, closed with the test.
func receiver(t *testing.T, secure bool, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	if secure {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

var sesame = []byte("open sesame, open sesame")

func aMessage() *Message {
	m := Sample("shop", Dead, time.Unix(1_700_000_000, 0).UTC())
	m.Notices[0].Error = "no ${HOME}, $${HOME}" // must not be taken for a variable
	return m
}

func TestSend_isSignedAndSaysWhatHappened(t *testing.T) {
	t.Parallel()
	var body []byte
	s := receiver(t, true, func(_ http.ResponseWriter, r *http.Request) {
		body, _ = io.ReadAll(r.Body)
		if err := Verify(sesame, r.Header, body, time.Now()); err != nil {
			t.Error(err)
		}
	})
	target := Target{Name: "ops", URL: s.URL + "/hook", Key: sesame, TLS: s.Client().Transport.(*http.Transport).TLSClientConfig}
	must(t, Send(t.Context(), target, aMessage()))
	var got struct {
		Type string
		Data struct {
			Title, Namespace string
			Count            int
			Notices          []Notice
		}
	}
	must(t, json.Unmarshal(body, &got))
	if got.Type != "onbeat.notify.dead" || got.Data.Title != "shop: 1,000 tasks are dead" || got.Data.Count != 1000 || got.Data.Notices[0].Error != "no ${HOME}, $${HOME}" {
		t.Errorf("%s", body)
	}
}

// No error shows the URL, whatever a receiver does.
func TestSend_failsAndShowsNoSecret(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("/fails/sesame", func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "no such hook: "+r.URL.String()+" at http://"+r.Host+r.URL.String(), http.StatusNotFound)
	})
	mux.HandleFunc("/busy/sesame", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "90")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	mux.HandleFunc("/moves/sesame", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/taken", http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("/taken", func(http.ResponseWriter, *http.Request) { t.Error("followed a redirect") })
	mux.HandleFunc("/slow/sesame", func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-over:
		}
	})
	mux.HandleFunc("/hangs-up/sesame", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	s := receiver(t, false, mux.ServeHTTP)
	t.Cleanup(func() { close(over) }) // before the server is closed, which waits for it
	for path, want := range map[string]string{
		"fails": "404 Not Found", "busy": "429", "moves": "307", "slow": "no answer within", "hangs-up": "EOF",
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			target := Target{Name: "ops", URL: s.URL + "/" + path + "/sesame?token=hush-hush", Timeout: 300 * time.Millisecond}
			err := Send(t.Context(), target, aMessage())
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `target "ops" at 127.0.0.1`) {
				t.Fatalf("%v, want %s", err, want)
			}
			if text := err.Error(); strings.Contains(text, "sesame") || strings.Contains(text, "hush") {
				t.Errorf("shows the URL: %s", text)
			}
			if d, ok := handlers.RetryDelay(err); ok != (path == "busy") || ok && d != 90*time.Second {
				t.Errorf("tried again in %v, %v", d, ok)
			}
		})
	}
}

// The answer of a receiver may repeat the URL of the request, and an archive keeps the outputs of runs.
func TestSend_leavesNoOutput(t *testing.T) {
	t.Parallel()
	s := receiver(t, false, func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("took it at http://" + r.Host + r.URL.String() + " signed " + r.Header.Get(sign.HeaderSignature)))
	})
	sender, err := newSender(Target{Name: "ops", URL: s.URL + "/services/sesame?token=hush-hush", Key: sesame})
	must(t, err)
	t.Cleanup(sender.close)
	one := &task.Task{ID: "id", Type: Type, Attempt: 1, MaxAttempts: 1}
	ctx := handlers.KeepOutput(t.Context(), 1<<10)
	must(t, sender.send(ctx, one, aMessage()))
	if got := handlers.Kept(ctx, one); strings.Contains(got, "sesame") || strings.Contains(got, "hush") {
		t.Errorf("the output shows the URL: %s", got)
	}
}

func TestSend_endsWithAnEndlessAnswer(t *testing.T) {
	t.Parallel()
	s := receiver(t, false, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	})
	began := time.Now()
	must(t, Send(t.Context(), Target{Name: "ops", URL: s.URL}, aMessage()))
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestSend_refusesACertificateOfAnother(t *testing.T) {
	t.Parallel()
	s := receiver(t, true, func(http.ResponseWriter, *http.Request) { t.Error("was sent") })
	err := Send(t.Context(), Target{Name: "ops", URL: s.URL + "/sesame"}, aMessage())
	if err == nil || !strings.Contains(err.Error(), "certificate") || strings.Contains(err.Error(), "sesame") {
		t.Errorf("%v", err)
	}
	known := s.Client().Transport.(*http.Transport).TLSClientConfig
	named := strings.Replace(s.URL, "127.0.0.1", "localhost", 1) // the certificate is for 127.0.0.1 and example.com
	err = Send(t.Context(), Target{Name: "ops", URL: named, TLS: known}, aMessage())
	if err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("%v", err)
	}
}

// A certificate that is over is one of nobody, though its maker is trusted.
func TestSend_refusesACertificateThatIsOver(t *testing.T) {
	t.Parallel()
	for name, ended := range map[string]time.Duration{"over": -time.Hour, "in its time": time.Hour} {
		public, secret, err := ed25519.GenerateKey(nil)
		must(t, err)
		about := &x509.Certificate{
			SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(ended), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		}
		der, err := x509.CreateCertificate(nil, about, about, public, secret)
		must(t, err)
		cert, err := x509.ParseCertificate(der)
		must(t, err)
		sent := false
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { sent = true }))
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: secret}}}
		s.StartTLS()
		t.Cleanup(s.Close)
		pool := x509.NewCertPool()
		pool.AddCert(cert)
		err = Send(t.Context(), Target{Name: "ops", URL: s.URL + "/sesame", TLS: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}, aMessage())
		if good := ended > 0; sent != good || (err == nil) != good || err != nil && (!strings.Contains(err.Error(), "expired") || strings.Contains(err.Error(), "sesame")) {
			t.Errorf("%s: sent %v, %v", name, sent, err)
		}
	}
}

func TestSend_keepsToPublicAddresses(t *testing.T) {
	t.Parallel()
	s := receiver(t, false, func(http.ResponseWriter, *http.Request) { t.Error("was sent") })
	err := Send(t.Context(), Target{Name: "ops", URL: s.URL, DenyPrivate: true}, aMessage())
	if !errors.Is(err, handlers.ErrDenied) || !handlers.IsDead(err) {
		t.Errorf("%v", err)
	}
}

// told collects what a handler tells.
type told struct {
	results []string
	events  []string
}

func (o *told) Notified(target, result string) { o.results = append(o.results, target+" "+result) }
func (o *told) Beat(of, result string)         { o.results = append(o.results, of+" "+result) }

func (o *told) Tell(_ context.Context, kind string, fields ...string) error {
	o.events = append(o.events, kind+" "+strings.Join(fields, " "))
	return nil
}

func TestHandler_triesAgainAndGivesUpAloud(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	s := receiver(t, false, func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) < 3 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	o := &told{}
	h, err := NewHandler([]Target{{Name: "ops", URL: s.URL + "/sesame"}}, o, o, zerolog.Nop())
	must(t, err)
	t.Cleanup(func() { _ = h.Close() })
	payload := func(target string) []byte {
		b, err := json.Marshal(delivery{target, *aMessage()})
		must(t, err)
		return b
	}
	run := func(payload []byte, attempt int) error {
		one := taskOf("id", "", string(payload))
		one.Attempt = attempt
		return h.Handle(t.Context(), one)
	}
	if err := run(payload("ops"), 1); err == nil || handlers.IsDead(err) {
		t.Errorf("%v", err)
	}
	if err := run(payload("ops"), mostAttempts); err == nil {
		t.Error("sent")
	}
	must(t, run(payload("ops"), 2))
	if err := run(payload("gone"), 1); !errors.Is(err, ErrNoTarget) || handlers.IsDead(err) {
		t.Errorf("%v", err)
	}
	if err := run(payload("gone"), mostAttempts); !errors.Is(err, ErrNoTarget) {
		t.Errorf("%v", err)
	}
	bad := []string{"", "{}", `{"target": "ops"}`, "[]"}
	for _, bad := range bad {
		if err := run([]byte(bad), 1); !handlers.IsDead(err) || !errors.Is(err, task.ErrInvalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if got, want := fmt.Sprint(o.results), "[ops failed ops gave_up ops sent gone failed gone gave_up"+strings.Repeat(" unknown gave_up", len(bad))+"]"; got != want {
		t.Errorf("results %s, want %s", got, want)
	}
	if len(o.events) != 2+len(bad) || !strings.HasPrefix(o.events[0], "notification failed target ops topic dead task id reason target \"ops\" at") || strings.Contains(o.events[0], "sesame") {
		t.Errorf("events %q", o.events)
	}
}
