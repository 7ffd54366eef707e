package main

import (
	"bytes"
	"encoding/json"
	"regexp"
	"testing"

	"github.com/rs/zerolog"
)

// Many schedules beat more than once a second.
func TestLog_timesHaveMilliseconds(t *testing.T) {
	t.Parallel()
	for format, want := range map[string]string{
		"json":    `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`,
		"console": `^\d\d:\d\d:\d\d\.\d{3} `,
	} {
		var out bytes.Buffer
		a := newApp(&globals{}, func(string) string { return "" }, nil, nil, &out)
		log := a.log(zerolog.InfoLevel, format)
		log.Info().Msg("leads")
		got := out.String()
		if format == "json" {
			var line struct{ Time string }
			if err := json.Unmarshal(out.Bytes(), &line); err != nil {
				t.Fatalf("%q: %v", got, err)
			}
			got = line.Time
		}
		if !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("%s: got %q, want %s", format, got, want)
		}
	}
}
