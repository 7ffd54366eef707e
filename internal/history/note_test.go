package history_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/task"
)

func TestRun_isReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	slot := &task.Task{ID: "beat@1700000000000", Schedule: "beat", Attempt: 3, Claimed: ms(1700000000012)}
	line, more, _ := strings.Cut(history.Run(slot, history.Failed, 340*time.Millisecond, "dial tcp:\n\trefused "+strings.Repeat("é", 200)), "\t")
	if want := "beat@1700000000000 failed 3 1700000000012"; line != want {
		t.Errorf("%q, want %q", line, want)
	}
	e := history.ParseEntry("1700000000400-0", map[string]any{"runs": line, "more": more, "gen": "7", "instance": "a", "release": "v2"})
	n := e.Notes[0]
	if n.Took != 340*time.Millisecond || n.Attempt != 3 || n.Gen != 7 || n.Instance != "a" || n.Release != "v2" || !n.At.Equal(ms(1700000000400)) {
		t.Errorf("%+v", n)
	}
	if !strings.HasPrefix(n.Error, "dial tcp:  refused éé") || !strings.HasSuffix(n.Error, "é…") || len(n.Error) > 210 {
		t.Errorf("error %q", n.Error)
	}
	if got := history.Run(&task.Task{ID: "beat@1700000000000"}, history.Done, 0, ""); got != "" {
		t.Errorf("a task that is no slot: %q", got)
	}
}

func TestUnread_isOfASlotOnly(t *testing.T) {
	t.Parallel()
	var notes history.Notes
	if got := history.Parse(notes.Unread(&task.Task{ID: "beat@5"})); got.Word != history.Dead || got.Schedule != "beat" || !got.Claimed.IsZero() {
		t.Errorf("%+v", got)
	}
	if got := notes.Unread(&task.Task{ID: "mine"}); got != "" {
		t.Errorf("%q", got)
	}
}

var written = regexp.MustCompile(`notes\[#notes \+ 1\] = [^\n]*" ([a-z]+) `)

// Lua writes words of this package, and no others.
func TestWords_ofLua(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../queue/scripts/*.lua")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range written.FindAllStringSubmatch(string(text), -1) {
			found++
			if !slices.Contains(history.Words(), history.Word(m[1])) {
				t.Errorf("%s writes %q", name, m[1])
			}
		}
	}
	if found < 4 {
		t.Errorf("only %d words were found: did the scripts change?", found)
	}
}
