// Package sign signs requests as Standard Webhooks says (standardwebhooks.com): those of the http handler, and messages of notify.
package sign

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strings"
)

// The headers of a signed request, in canonical form.
const (
	HeaderID        = "Webhook-Id"
	HeaderTimestamp = "Webhook-Timestamp"
	HeaderSignature = "Webhook-Signature"
)

// LeastKey is how many bytes a key has at least.
const LeastKey = 16

// Of returns the signature of a request: of its ID, the seconds since 1970, and the body.
func Of(key []byte, id, timestamp, body string) string {
	mac := hmac.New(sha256.New, key)
	_, _ = mac.Write([]byte(id + "." + timestamp + "." + body))
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// ErrKey reports that the text behind whsec_ is not base64.
var ErrKey = errors.New("not base64 behind whsec_")

// Key reads a key as a person writes it: whsec_ and base64, or else the bytes of the text itself.
func Key(text string) ([]byte, error) {
	text = strings.TrimSpace(text)
	coded, ok := strings.CutPrefix(text, "whsec_")
	if !ok {
		return []byte(text), nil
	}
	key, err := base64.StdEncoding.DecodeString(coded)
	if err != nil {
		return nil, ErrKey
	}
	return key, nil
}
