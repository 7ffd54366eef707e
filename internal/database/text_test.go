package database_test

import (
	"testing"

	"github.com/onbeat/onbeat/internal/database"
)

func TestText_isWhatPostgreSQLTakes(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"plain": "plain", "a\x00b": "a\uFFFDb", "a\xffb": "a\uFFFDb", "0123456789": "01234567…", "": ""} {
		if got := database.Text(in, 8); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}
