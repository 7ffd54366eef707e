package config

import (
	"strings"
	"testing"
)

func TestConfig_saysWhichFilesTLSTakes(t *testing.T) {
	t.Parallel()
	c := &File{Redis: Redis{URL: "rediss://h", CA: "/ca.pem", Key: "/k ey"}}
	const files = "tls_ca=%2Fca.pem&tls_key=%2Fk+ey"
	for raw, want := range map[string]string{
		"rediss://h":               "rediss://h?" + files,
		"rediss://h?db=3":          "rediss://h?db=3&" + files,
		"rediss-cluster://a:1,b:2": "rediss-cluster://a:1,b:2?" + files, // of a flag, say
		"rediss://h?tls_ca=/other": "rediss://h?tls_ca=/other",
		"redis://h":                "redis://h",
	} {
		if got := c.WithTLS(raw); got != want {
			t.Errorf("%s: %s, want %s", raw, got, want)
		}
	}
}

func TestHasPassword(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]bool{
		"": false, "redis://h": false, "redis://user@h": false, "redis://user:@h": false, "redis://:@h,i:1": false,
		"redis://user:p@h": true, "redis://:p@h:1,i:2/m": true, "redis-sentinel://a:1,b:2/m?sentinel_password=p": true,
		"redis-sentinel://a/m?sentinel_password=": false,
	} {
		if got := hasPassword(raw); got != want {
			t.Errorf("%q: %t", raw, got)
		}
	}
}

// A URL is looked into before Dial has refused it.
func FuzzRedisURL(f *testing.F) {
	for _, s := range []string{"redis://u:p@h", "redis://:p@h:1,i:2/m?sentinel_password=p", "rediss://h?tls_ca=%", "redis://h?a=b&tls_key=k&&="} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		file := &File{Redis: Redis{CA: "/ca.pem"}}
		_ = hasPassword(raw)
		if once := file.place(raw); file.place(once) != once {
			t.Errorf("%q names other files with its files in place: %q", raw, once)
		}
		if with := file.WithTLS(raw); !strings.HasPrefix(with, raw) {
			t.Errorf("%q became %q", raw, with)
		}
	})
}
