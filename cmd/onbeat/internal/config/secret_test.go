package config_test

import (
	"os"
	"strings"
	"testing"

	"github.com/onbeat/onbeat/cmd/onbeat/internal/config"
)

func TestCheck_showsNoSecretOfARefusedPayload(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{"", "    secret: [url]\n"} {
		text := "namespace: shop\nsecret: {http: [url]}\nschedules:\n  - name: a\n    every: 1h\n    task: http\n    payload: {url: \"ftp://h/hunter2\"}\n" + secret
		f, err := config.Parse("shop.yaml", []byte(text), os.Getenv)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Check(); err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "payload.url") {
			t.Errorf("%q: %v", secret, err)
		}
	}
}
