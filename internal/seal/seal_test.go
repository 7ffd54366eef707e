package seal_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/onbeat/onbeat/internal/seal"
	"github.com/onbeat/onbeat/task"
)

func key(id string) task.EncryptionKey {
	return task.EncryptionKey{ID: id, Secret: bytes.Repeat([]byte(id[:1]), task.EncryptionKeyBytes)}
}

func keysOf(t testing.TB, c task.Encryption) *seal.Keys {
	t.Helper()
	k, err := seal.New(c, "shop")
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestOpen_refusesWhatWasChangedOrMoved(t *testing.T) {
	t.Parallel()
	k := keysOf(t, task.Encryption{Keys: []task.EncryptionKey{key("a"), key("b")}})
	owner, plain := seal.Task("id", "type"), []byte("payload")
	box := k.Seal(owner, plain, []string{"card", "a.b"})
	if got, secret, err := k.Open(owner, box); err != nil || !bytes.Equal(got, plain) || box.Key != "a" || !slices.Equal(secret, []string{"card", "a.b"}) {
		t.Fatalf("%s, %q, %q, %v", box.Key, got, secret, err)
	}
	elsewhere, err := seal.New(task.Encryption{Keys: []task.EncryptionKey{key("a")}}, "other")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := elsewhere.Open(owner, box); !errors.Is(err, task.ErrDamaged) {
		t.Errorf("in another namespace: %v", err)
	}
	for name, o := range map[string]seal.Owner{
		"another task": seal.Task("id2", "type"), "another type": seal.Task("id", "type2"),
		"a schedule": seal.Schedule("id", "type"), "the same letters": seal.Task("i", "dtype"),
	} {
		if _, _, err := k.Open(o, box); !errors.Is(err, task.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for i := range box.Data {
		broken := *box
		broken.Data = bytes.Clone(box.Data)
		broken.Data[i] ^= 1
		if _, _, err := k.Open(owner, &broken); !errors.Is(err, task.ErrDamaged) {
			t.Fatalf("bit flipped in byte %d: %v", i, err)
		}
	}
	renamed := *box
	renamed.Key = "b"
	if _, _, err := k.Open(owner, &renamed); !errors.Is(err, task.ErrDamaged) {
		t.Errorf("under the name of another key: %v", err)
	}
	if _, _, err := (*seal.Keys)(nil).Open(owner, box); !errors.Is(err, task.ErrNoKey) || !strings.Contains(err.Error(), `"a"`) {
		t.Errorf("without keys: %v", err)
	}
}

func TestKeys_rotate(t *testing.T) {
	t.Parallel()
	owner := seal.Schedule("s", "t")
	one, both, next := keysOf(t, task.Encryption{Keys: []task.EncryptionKey{key("a")}}), keysOf(t, task.Encryption{Keys: []task.EncryptionKey{key("a"), key("b")}}), keysOf(t, task.Encryption{Keys: []task.EncryptionKey{key("b"), key("a")}})
	a, b := one.Seal(owner, []byte("x"), nil), next.Seal(owner, []byte("x"), nil)
	for _, box := range []*task.Sealed{a, b} {
		if plain, _, err := both.Open(owner, box); err != nil || string(plain) != "x" {
			t.Errorf("%s: %q, %v", box.Key, plain, err)
		}
	}
	if !next.Stale(a) || next.Stale(b) || !one.Stale(nil) {
		t.Error("stale is what another key sealed, or none")
	}
	reads := keysOf(t, task.Encryption{Keys: []task.EncryptionKey{key("a")}, OpenOnly: true})
	if reads.Seal(owner, []byte("x"), nil) != nil || !reads.Stale(a) || reads.Stale(nil) {
		t.Error("open only: seals nothing")
	}
}

// Without keys, a task or a schedule costs no memory more.
func TestKeys_thatAreNotThereCostNothing(t *testing.T) {
	t.Parallel()
	var none *seal.Keys
	owner, plain := seal.Task("id", "type"), []byte("payload")
	if n := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if none.Seal(owner, plain, nil) != nil || none.Stale(nil) || none.Has("a") || none.First() != "" {
				b.Fatal("there are no keys")
			}
		}
	}).AllocsPerOp(); n != 0 {
		t.Errorf("%d allocations", n)
	}
}

func TestNew_refusesKeysThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	for _, keys := range [][]task.EncryptionKey{
		{{ID: "", Secret: key("a").Secret}}, {{ID: "a b", Secret: key("a").Secret}}, {{ID: strings.Repeat("a", 65), Secret: key("a").Secret}},
		{key("a"), key("a")}, {{ID: "a", Secret: []byte("hunter2")}}, {{ID: "a"}},
	} {
		_, err := seal.New(task.Encryption{Keys: keys}, "shop")
		if !errors.Is(err, task.ErrInvalid) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", keys[0].ID, err)
		}
	}
}

func FuzzParseBox(f *testing.F) {
	k := keysOf(f, task.Encryption{Keys: []task.EncryptionKey{key("a")}})
	owner := seal.Task("id", "type")
	real := k.Seal(owner, []byte("payload"), []string{"p"})
	f.Add(string(real.Append(nil)))
	f.Add("\x01at")
	f.Add(string(k.Seal(seal.Answer("id", "request"), []byte("payload"), nil).Append(nil)))
	f.Fuzz(func(t *testing.T, s string) {
		box := task.ParseSealed(s)
		if box == nil {
			return
		}
		if again := string(box.Append(nil)); again != s || box.Len() != len(s) {
			t.Errorf("%q became %q, %d bytes", s, again, box.Len())
		}
		if plain, _, err := k.Open(owner, box); err == nil && string(plain) != "payload" {
			t.Errorf("%q opened as %q", s, plain)
		}
	})
}
