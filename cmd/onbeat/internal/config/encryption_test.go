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
	"github.com/onbeat/onbeat/internal/seal"
)

// keyText is a key as people write it.
func keyText(b byte) string {
	return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{b}, seal.KeyBytes))
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
		"{id: a, key: '" + secret + "'}":       "key: written in the file",
		"{id: a, key: 'x${GOOD}'}":             "key: written in the file",
		"{id: a, key: '${UNSET}'}":             `key "${UNSET}": the environment variable is not set (set UNSET; base64`,
		"{id: a, key: '${SHORT}'}":             `key "${SHORT}": does not hold a key (base64 of 32 random bytes`,
		"{id: a}":                              "key: missing, or beside a key_file",
		"{id: a, key: '${GOOD}', key_file: x}": "key: missing, or beside a key_file",
		"{id: a, key_file: nowhere}":           `key_file "nowhere": no such file or directory (name a file`,
		"{id: a, key_file: write}":             `key_file "write": others may`,
		"{id: a, key_file: short}":             `key_file "short": does not hold a key`,
		"{id: a, key_file: long}":              `key_file "long": larger than 4096 bytes`,
		"{id: 'a b', key: '${GOOD}'}":          `id "a b": not the name of a key`,
		"{key: '${GOOD}'}":                     "id: not the name of a key",
		"{id: ok, key: '${GOOD}'}":             `id "ok": names two keys`,
	} {
		if strings.Contains(want, "others") && runtime.GOOS == "windows" {
			continue
		}
		text := "namespace: x\nencryption:\n  keys:\n    - {id: ok, key_file: good}\n    - " + entry + "\n"
		putKey(t, filepath.Join(dir, "x.yaml"), text, 0o600)
		f, err := Load(filepath.Join(dir, "x.yaml"), testEnv("GOOD", keyText(1), "SHORT", secret[:12]))
		if err != nil {
			t.Fatal(err)
		}
		err = f.Check()
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "x.yaml:5: ") {
			t.Errorf("%s: %v, want %s", entry, err, want)
			continue
		}
		if strings.Contains(err.Error(), secret[:10]) {
			t.Errorf("%s: it shows the key: %v", entry, err)
		}
		if got := field.Of(ProblemsOf(err)[0]).Field; !strings.HasPrefix(got, "encryption.keys[1]") {
			t.Errorf("%s: the field %s", entry, got)
		}
	}
	f, err := Parse("x.yaml", []byte("encryption: {open_only: true}\n"), testEnv())
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Check(); err == nil || !strings.Contains(err.Error(), "there is no key to open with") {
		t.Error(err)
	}
}
