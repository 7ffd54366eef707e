package notify

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/sign"
)

// The example of Standard Webhooks.
func TestSignature_isThatOfStandardWebhooks(t *testing.T) {
	t.Parallel()
	key, err := Key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	must(t, err)
	const body = `{"test": 2432232314}`
	got := sign.Of(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", body)
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Fatalf("%s, want %s", got, want)
	}
	h := http.Header{sign.HeaderID: {"msg_p5jXN8AQM9LWM0D4loKWxJek"}, sign.HeaderTimestamp: {"1614265330"}, sign.HeaderSignature: {"v1,bm90IGl0 " + got}}
	at := time.Unix(1614265330, 0)
	must(t, Verify(key, h, []byte(body), at.Add(ReplayWindow)))
	for name, err := range map[string]error{
		"replayed":     Verify(key, h, []byte(body), at.Add(ReplayWindow+time.Second)),
		"ahead":        Verify(key, h, []byte(body), at.Add(-ReplayWindow-time.Second)),
		"another body": Verify(key, h, []byte(body+" "), at),
		"another key":  Verify([]byte("0123456789abcdef"), h, []byte(body), at),
		"no key":       Verify(nil, h, []byte(body), at),
		"no headers":   Verify(key, http.Header{}, []byte(body), at),
	} {
		if !errors.Is(err, ErrSignature) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestKey_isBase64OrTheText(t *testing.T) {
	t.Parallel()
	if key, err := Key(" 0123456789abcdef\n"); err != nil || string(key) != "0123456789abcdef" {
		t.Errorf("%q, %v", key, err)
	}
	if _, err := Key("whsec_***"); err == nil {
		t.Error("took what is not base64")
	}
}
