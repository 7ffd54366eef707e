package notify

import (
	"crypto/hmac"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/onbeat/onbeat/internal/sign"
)

// ReplayWindow is how old, or how far ahead, the timestamp of a request may be for [Verify].
const ReplayWindow = 5 * time.Minute

// ErrSignature is returned by [Verify] for a request that was not signed with the key, or not lately.
var ErrSignature = errors.New("the signature is not valid")

// Verify is for receivers: it returns an error that matches [ErrSignature] unless the request was signed with the key, within
// [ReplayWindow] of now. A message that is sent again has the same Webhook-Id and another timestamp: a receiver that keeps the
// IDs of the last ten minutes refuses every replay.
func Verify(key []byte, h http.Header, body []byte, now time.Time) error {
	id, timestamp := h.Get(sign.HeaderID), h.Get(sign.HeaderTimestamp)
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || id == "" || len(key) == 0 {
		return fmt.Errorf("%w: no ID, no timestamp or no key", ErrSignature)
	}
	if age := now.Sub(time.Unix(seconds, 0)); age > ReplayWindow || age < -ReplayWindow {
		return fmt.Errorf("%w: its timestamp is %s off", ErrSignature, age.Round(time.Second))
	}
	want := sign.Of(key, id, timestamp, string(body))
	for one := range strings.FieldsSeq(h.Get(sign.HeaderSignature)) {
		if hmac.Equal([]byte(one), []byte(want)) {
			return nil
		}
	}
	return fmt.Errorf("%w: it is of another key or another body", ErrSignature)
}

// Key reads a key as a person writes it: whsec_ and base64, as Standard Webhooks has it, or else the bytes of the text itself.
func Key(text string) ([]byte, error) {
	key, err := sign.Key(text)
	if err != nil {
		return nil, refuse("key", "", err.Error(), "make one with: echo whsec_$(openssl rand -base64 32)")
	}
	return key, nil
}
