package config

import (
	"bytes"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/onbeat/onbeat/internal/field"
	"github.com/onbeat/onbeat/task"
)

// keyText is a key as people write it.
func keyText(b byte) string {
	return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{b}, task.EncryptionKeyBytes))
}

func putKey(t *testing.T, name, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, mode); err != nil {
		t.Fatal(err)
	}
}

func TestEncryption_readsKeysFromTheEnvironmentAndFromFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	putKey(t, filepath.Join(dir, "old"), keyText(2)+"\n", 0o600)
	const text = "encryption:\n  open_only: true\n  keys:\n    - {id: new, key: '${NEW}'}\n    - {id: old, key_file: old}\n"
	putKey(t, filepath.Join(dir, "x.yaml"), text, 0o600)
	f, err := Load(filepath.Join(dir, "x.yaml"), testEnv("NEW", " "+keyText(1)+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Check(), f.Unset()); err != nil {
		t.Fatal(err)
	}
	if len(f.KeyFiles) != 1 || f.KeyFiles[0] != filepath.Join(dir, "old") {
		t.Error(f.KeyFiles)
	}
	e := f.Dispatcher.Encryption
	if len(e.Keys) != 2 || !e.OpenOnly || e.Keys[0].ID != "new" || e.Keys[0].Secret[31] != 1 || e.Keys[1].ID != "old" || e.Keys[1].Secret[0] != 2 {
		t.Errorf("%d keys", len(e.Keys))
	}
}

// A key that cannot be used is refused with its line and what to do, and no refusal shows any of a key. Then there are no keys, and
// not some of them.
func TestEncryption_refusesKeysThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	secret := keyText('s')
	putKey(t, filepath.Join(dir, "good"), keyText(2), 0o600)
	putKey(t, filepath.Join(dir, "write"), secret, 0o620)
	putKey(t, filepath.Join(dir, "short"), secret[:20], 0o600)
	putKey(t, filepath.Join(dir, "long"), strings.Repeat(secret, 100), 0o600)
	for entry, want := range map[string]string{
		"{id: a, key: '" + secret + "'}":       "key",
		"{id: a, key: 'x${GOOD}'}":             "key",
		"{id: a, key: '${UNSET}'}":             "key",
		"{id: a, key: '${SHORT}'}":             "key",
		"{id: a}":                              "key",
		"{id: a, key: '${GOOD}', key_file: x}": "key",
		"{id: a, key_file: nowhere}":           "key_file",
		"{id: a, key_file: write}":             "key_file",
		"{id: a, key_file: short}":             "key_file",
		"{id: a, key_file: long}":              "key_file",
		"{id: 'a b', key: '${GOOD}'}":          "id",
		"{key: '${GOOD}'}":                     "id",
		"{id: ok, key: '${GOOD}'}":             "id",
	} {
		if strings.Contains(entry, "write") && runtime.GOOS == "windows" {
			continue
		}
		text := "namespace: x\nencryption:\n  keys:\n    - {id: ok, key_file: good}\n    - " + entry + "\n"
		putKey(t, filepath.Join(dir, "x.yaml"), text, 0o600)
		f, err := Load(filepath.Join(dir, "x.yaml"), testEnv("GOOD", keyText(1), "SHORT", secret[:12]))
		if err != nil {
			t.Fatal(err)
		}
		err = f.Check()
		if list := ProblemsOf(err); len(list) != 1 || list[0].Line != 5 || field.Of(list[0]).Field != "encryption.keys[1]."+want {
			t.Errorf("%s: %v, want %s of line 5", entry, err, want)
			continue
		}
		if strings.Contains(err.Error(), secret[:10]) {
			t.Errorf("%s: it shows the key: %v", entry, err)
		}
	}
	f, err := Parse("x.yaml", []byte("encryption: {open_only: true}\n"), testEnv())
	if err != nil {
		t.Fatal(err)
	}
	if f.Check() == nil {
		t.Error("it opens with no key")
	}
}
