package history_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/task"
)

// entryOf puts a note into an entry, as the scripts do.
func entryOf(note string) history.Entry {
	line, more, facts, other := history.Split(note)
	field := "runs"
	if other {
		field = "tasks"
	}
	return history.ParseEntry("1700000000400-0", map[string]any{field: line, "more": more, "facts": facts, "gen": "7", "instance": "a", "release": "v2"})
}

// With an archive each run is noted, whatever its task is, and is read as it was written.
func TestNotes_ofEveryRun(t *testing.T) {
	t.Parallel()
	every := history.Notes{Every: true, Output: 1 << 10}
	claimed, due := ms(1700000000012), ms(1700000000005)
	for _, tt := range []struct {
		id, schedule string // of the task
		want         history.Note
	}{
		{"beat@1700000000000", "beat", history.Note{Schedule: "beat", Slot: ms(1700000000000), Maker: "beat"}},
		{"beat!0001", "beat", history.Note{Maker: "beat"}},
		{"beat@1700000000000!b", "beat", history.Note{Maker: "beat"}},
		{"order 17", "", history.Note{}},
		{"user@example.com", "", history.Note{}},
		{"beat@1700000000000", "", history.Note{}}, // a caller chose this ID
		{"beat@5..9", "", history.Note{}},
		{"beat!0001", "", history.Note{}},
	} {
		tk := &task.Task{ID: tt.id, Schedule: tt.schedule, Type: "http", Queue: "mail", Due: due, Attempt: 3, Claimed: claimed}
		note := every.Run(tk, history.Failed, 340*time.Millisecond, "no\tluck", "12 rows\n\tand \\n more ")
		want := tt.want
		want.TaskID, want.Word, want.Attempt, want.Claimed, want.Took = tt.id, history.Failed, 3, claimed, 340*time.Millisecond
		want.Error, want.Type, want.Queue, want.Due, want.Output = "no luck", "http", "mail", due, "12 rows\n\tand \\n more "
		if got := history.Parse(note); got != want {
			t.Errorf("%q:\n got %+v\nwant %+v", note, got, want)
		}
		want.Gen, want.Instance, want.Release, want.At = 7, "a", "v2", ms(1700000000400)
		e := entryOf(note)
		if len(e.Notes) != 1 || e.Notes[0] != want {
			t.Errorf("%q in an entry:\n got %+v\nwant %+v", note, e.Notes, want)
		}
		if none := history.Run(tk, history.Done, 0, ""); (none == "") != (tt.schedule == "") || strings.Count(none, "\t") > 1 {
			t.Errorf("without an archive: %q", none)
		}
	}
}

// A release from before reads entries with facts as it always has: it knows the field runs alone, and each of its lines.
func TestNotes_leaveTheLinesAsTheyWere(t *testing.T) {
	t.Parallel()
	slot := &task.Task{ID: "beat@5", Schedule: "beat", Type: "http", Attempt: 1, Claimed: ms(7)}
	old, oldMore, _, _ := history.Split(history.Run(slot, history.Failed, time.Second, "no"))
	line, more, facts, other := history.Split(history.Notes{Every: true, Output: 99}.Run(slot, history.Failed, time.Second, "no", "out"))
	if line != old || more != oldMore || facts == "" || other {
		t.Errorf("%q %q %q %v, before %q %q", line, more, facts, other, old, oldMore)
	}
	one := &task.Task{ID: "beat@5", Type: "http", Attempt: 1, Claimed: ms(7)}
	if _, _, _, other := history.Split(history.Notes{Every: true}.Run(one, history.Done, 0, "", "")); !other {
		t.Error("a task that no schedule made goes into the history, where its ID looks like a slot")
	}
}

func TestNotes_capTheOutput(t *testing.T) {
	t.Parallel()
	tk := &task.Task{ID: "a", Type: "job"}
	for limit, want := range map[int]string{0: "", 3: "ab…", 4: "abé…", 5: "abéc"} {
		n := history.Parse(history.Notes{Every: true, Output: limit}.Run(tk, history.Done, 0, "", "abéc"))
		if n.Output != want || n.Type != "job" || n.Queue != task.DefaultQueue || !n.Due.IsZero() {
			t.Errorf("%d bytes: %+v, want %q", limit, n, want)
		}
	}
}

// Facts that something else damaged, or that a newer release wrote with more parts, do no harm to the rest of the note.
func TestParseEntry_readsDamagedFacts(t *testing.T) {
	t.Parallel()
	for facts, want := range map[string]history.Note{
		"":                             {},
		"x":                            {},
		"http mail":                    {},
		"http mail x":                  {Type: "http", Queue: "mail"},
		"http mail -5 out":             {Type: "http", Queue: "mail", Output: "out"},
		"http mail 9999999999999999 a": {Type: "http", Queue: "mail", Due: ms(253402300799999), Output: "a"},
		`http mail 5 \q\x0\xzz\`:       {Type: "http", Queue: "mail", Due: ms(5), Output: `\q\x0\xzz\`},
		`http mail 5 \x1b\x00\xff\n\\`: {Type: "http", Queue: "mail", Due: ms(5), Output: "\x1b" + `\x00\xff` + "\n\\"},
	} {
		want.TaskID, want.Word, want.Attempt, want.Claimed, want.At = "a", history.Done, 1, ms(7), ms(9)
		e := history.ParseEntry("9-0", map[string]any{"tasks": "\na done 1 7", "more": "4 x", "facts": "\n" + facts + "\nanother"})
		if len(e.Notes) != 1 || e.Notes[0] != want {
			t.Errorf("%q:\n got %+v\nwant %+v", facts, e.Notes, want)
		}
	}
}

// Any output of a handler stays on its line, and comes back as text that any database stores.
func FuzzOutput(f *testing.F) {
	f.Add("12 rows", "http", 100)
	f.Add("a\nb\t\r\\\x1b[0m\x7f", "", 7)
	f.Add("\xff\x00é\u2028", "a b\nc", 3)
	f.Add("none of it", "http", -1000)
	f.Fuzz(func(t *testing.T, output, typ string, limit int) {
		n := history.Notes{Every: true, Output: limit}
		queue := "q"
		if typ == "" { // of a record that could not be read nothing is told
			queue = ""
		}
		for _, schedule := range []string{"", "s"} {
			note := n.Run(&task.Task{ID: "s@5", Schedule: schedule, Type: typ, Queue: "q", Attempt: 1, Claimed: ms(7)}, history.Done, 0, "", output)
			if strings.ContainsAny(note, "\n\x00") {
				t.Fatalf("%q", note)
			}
			e := entryOf(note)
			if len(e.Notes) != 1 {
				t.Fatalf("%q: %+v", note, e.Notes)
			}
			got := e.Notes[0]
			if got.TaskID != "s@5" || got.Word != history.Done || got.Queue != queue || !got.Claimed.Equal(ms(7)) {
				t.Fatalf("%q: %+v", note, got)
			}
			if !utf8.ValidString(got.Output) || strings.Contains(got.Output, "\x00") {
				t.Fatalf("%q cannot be stored", got.Output)
			}
			whole := strings.ReplaceAll(strings.ToValidUTF8(output, "\uFFFD"), "\x00", "\uFFFD")
			if typ != "" && len(output) <= limit && utf8.ValidString(output) && got.Output != whole {
				t.Fatalf("%q came back as %q", output, got.Output)
			}
		}
	})
}
