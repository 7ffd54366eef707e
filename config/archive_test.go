package config

import (
	"os"
	"path/filepath"
	"testing"
)

// A relative name of a file is one in the folder of the config, and a password in the file is noticed.
func TestArchive_isInTheFolderOfTheConfig(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "onbeat.yaml")
	if err := os.WriteFile(name, []byte("#\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for raw, want := range map[string]Archive{
		"sqlite://archive.db":      {URL: "sqlite://" + filepath.Join(dir, "archive.db")},
		"sqlite://an%20archive.db": {URL: "sqlite://" + dir + "/an%20archive.db"},
		"sqlite:///var/a.db":       {URL: "sqlite:///var/a.db"},
		"file:url":                 {URL: "file:" + filepath.Join(dir, "url")},
		"postgres://u:p@h/d":       {URL: "postgres://u:p@h/d", Secret: true},
		"postgres://u@h/d":         {URL: "postgres://u@h/d"},
		"postgres://u:${P}@h/d":    {URL: "postgres://u:p@h/d"},

		"postgres://u@h/d?password=p":    {URL: "postgres://u@h/d?password=p", Secret: true},
		"postgres://u@h/d?password=${P}": {URL: "postgres://u@h/d?password=p"},
	} {
		f, err := Parse(name, []byte("archive: {url: \""+raw+"\"}\n"), testEnv("P", "p"))
		if err != nil {
			t.Fatal(err)
		}
		if f.Archive != want {
			t.Errorf("%s: %+v, want %+v", raw, f.Archive, want)
		}
	}
}
