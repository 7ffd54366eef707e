package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/task"
)

// evil clears the screen, changes the window's title, turns text around, and repeats this with the other range of controls.
const evil = "evil\x1b[2J\x1b]0;x\x07\u009b31m\u202egnp\u2066\u061c\u200f\x7f\xffend"

// obeyed returns the first character that a terminal would obey or cannot show, or "".
func obeyed(s string) string {
	for i, r := range s {
		if r == utf8.RuneError && !strings.HasPrefix(s[i:], "\ufffd") {
			return "invalid UTF-8"
		}
		if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			return string(r)
		}
	}
	return ""
}

// haunt writes what onbeat never writes, as another program with access to the Redis can.
func (s *shell) haunt() {
	s.Helper()
	c := openInside(s.T, s.url, s.ns)
	dead := task.New("echo", []byte(`"`+strings.TrimSuffix(evil[strings.Index(evil, "\u009b"):], "\xffend")+`"`), task.Key(evil, 1))
	dead.ID = evil
	dead.Queue = "q" + evil
	other := task.New("type"+evil, []byte(evil+"\nid  fake"))
	other.ID = "plain"
	if _, _, err := c.queue.Enqueue(s.Context(), []*task.Task{dead, other}, false); err != nil {
		s.Fatal(err)
	}
	p := "onbeat:{" + s.ns + "}:"
	details, _ := json.Marshal(map[string]any{"host": evil, "types": []string{evil}, "version": evil})
	pipe := s.rdb.TxPipeline()
	pipe.XAdd(s.Context(), &redis.XAddArgs{Stream: p + "events", Values: map[string]any{"event": "x" + evil, "instance": evil + "\nfake", evil: "1"}})
	pipe.XAdd(s.Context(), &redis.XAddArgs{Stream: p + "history", Values: map[string]any{"n": evil}})
	pipe.ZAdd(s.Context(), p+"instances", redis.Z{Score: float64(time.Now().Add(time.Hour).UnixMilli()), Member: evil})
	pipe.HSet(s.Context(), p+"members", evil, "1 1 ready "+evil)
	pipe.HSet(s.Context(), p+"details", evil, string(details))
	pipe.HSet(s.Context(), p+"schedules", evil, evil)
	pipe.HSet(s.Context(), p+"last", evil, evil)
	if _, err := pipe.Exec(s.Context()); err != nil {
		s.Fatal(err)
	}
}

func TestTerminal_isGivenNothingToObey(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.haunt()
	for _, args := range [][]string{
		{"tasks", "list"}, {"tasks", "show", evil}, {"tasks", "show", "plain"}, {"tasks", "show", "none" + evil}, {"tasks", "list", "--queue", evil},
		{"tasks", "cancel", "none" + evil}, {"tasks", "delete", evil}, {"events"}, {"instances"}, {"doctor"}, {"schedules", "list"},
		{"schedules", "show", evil}, {"schedules", "pause", evil}, {"audit"}, {"audit", evil}, {"enqueue", evil}, {"enqueue", "echo", "--id", evil},
		{"enqueue", "echo", "--payload", evil}, {evil}, {"serve", "-c", evil}, {"schedules", "apply", evil}, {"preview", "--cron", evil},
		{"instances", "--redis", "redis://" + evil}, {"instances", "-n", evil}, {"lock", "run", "x", "--", evil}, {"preview", "--" + evil},
		{"instances", "promote", evil}, {"instances", "--redis", "file:" + evil},
	} {
		for _, more := range [][]string{nil, {"--json"}} {
			if len(more) > 0 && args[0] == "lock" {
				continue
			}
			r := s.run("", append(append([]string{}, args...), more...)...)
			if bad := obeyed(r.out + r.err); bad != "" {
				t.Errorf("%q %v: prints %q: %q", args, more, bad, r.out+r.err)
			}
			if r.out+r.err == "" {
				t.Errorf("%q %v: says nothing", args, more)
			}
		}
	}
}

func TestTerminal_showsWhatItHides(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.haunt()
	out := s.must("tasks", "list")
	if want := `evil\u001b[2J\u001b]0;x\u0007\u009b31m\u202egnp\u2066\u061c\u200f\u007f\ufffdend`; !strings.Contains(out, want) {
		t.Errorf("%q, want %q in it", out, want)
	}
	for line := range strings.SplitSeq(s.must("tasks", "show", "plain"), "\n") {
		if strings.HasPrefix(line, "id") && strings.Contains(line, "fake") {
			t.Errorf("a payload looks like a field: %q", line)
		}
	}
	for line := range strings.SplitSeq(s.must("events"), "\n") {
		if strings.HasPrefix(line, "fake") {
			t.Errorf("an event looks like two: %q", line)
		}
	}
	var page struct {
		Items []struct {
			ID      string
			Payload any
		}
	}
	s.json(&page, "tasks", "list") // a JSON reader gets the original text
	want := strings.ReplaceAll(evil, "\xff", "\ufffd")
	if len(page.Items) != 2 || page.Items[0].ID != want && page.Items[1].ID != want {
		t.Errorf("%+q, want the ID %q", page, want)
	}
}

func TestTerminal_rendersItsOwnControlsOnly(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	w := &terminal{w: &b}
	text := style{on: true}.red("a\x1b[1mb") + " \u202e" + control("2K") + "c\td\r\n"
	if n, err := w.Write([]byte(text)); n != len(text) || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if want := "\x1b[31ma\\u001b[1mb\x1b[0m \\u202e\x1b[2Kc\td\\u000d\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
	if isTerminal(w) {
		t.Error("a buffer is no terminal")
	}
}

func TestLog_isGivenNothingToObey(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"json", "console"} {
		for _, colour := range []bool{false, true} {
			var b bytes.Buffer
			a := &app{globals: &globals{}, err: &terminal{w: &b}, env: testEnv()}
			log := a.log(zerolog.InfoLevel, format)
			if colour {
				log = zerolog.New(consoleLog(a.err, true))
			}
			log.Error().Err(errors.New(evil)).Str("a", evil).Strs("list", []string{evil}).Interface("map", map[string]any{evil: []any{evil}}).
				Bytes("bytes", []byte(evil)).Str(evil, "x").Msg("it says " + evil + "\nfake")
			text := b.String()
			if colour {
				text = escapes.ReplaceAllString(text, "")
			}
			if bad := obeyed(text); bad != "" || strings.Count(text, "\n") != 1 || !strings.Contains(text, "it says evil") {
				t.Errorf("%s: prints %q: %q", format, bad, text)
			}
			if format == "json" && !colour && !json.Valid([]byte(text)) {
				t.Errorf("not JSON: %q", text)
			}
		}
	}
}
