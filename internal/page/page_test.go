package page

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// said keeps what a test would have failed with.
type said struct {
	testing.TB
	lines []string
}

func (s *said) Helper()                        {}
func (s *said) Errorf(format string, a ...any) { s.lines = append(s.lines, fmt.Sprintf(format, a...)) }

func TestTable_readsWhatIsUnderItsHeading(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "p.md")
	const text = "# P\n\n## A\n\n| a | b |\n|---|---|\n| `x`, `y` | `no` name |\n| `z` | |\n\nText | with `w`.\n\n| c |\n|---|\n| `v` |\n\n### B\n\n| d |\n|---|\n| `u` |\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	rows := Table(t, file, "## A")
	if got := Listed(t, rows); !slices.Equal(got, []string{"x", "y", "z", "v"}) {
		t.Errorf("%q", got)
	}
	if rows[0].Cells[1] != "`no` name" {
		t.Errorf("%q", rows[0].Cells)
	}
}

func TestCompare_saysWhatIsMissingAndWhatIsTooMuch(t *testing.T) {
	t.Parallel()
	s := &said{}
	Compare(s, "p", []string{"a", "b"}, []string{"b", "c"})
	if want := []string{`p lacks "c"`, `p lists "a", which the code does not have`}; !slices.Equal(s.lines, want) {
		t.Errorf("%q", s.lines)
	}
	s = &said{}
	if Listed(s, []Row{{Names: []string{"a"}}, {Names: []string{"a"}}}); len(s.lines) != 1 {
		t.Errorf("named twice: %q", s.lines)
	}
}
