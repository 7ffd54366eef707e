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

// archive.output is a size: bytes, or with a unit. Zero means no output, which is not the default.
func TestArchive_outputIsASize(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]int{"1024": 1024, "1KiB": 1024, "16 KiB": 16384, "0": -1} {
		f, err := Parse("x.yaml", []byte("archive: {url: 'sqlite:///a', output: "+said+"}\n"), testEnv())
		if err == nil {
			err = f.Check()
		}
		if err != nil || f.Archive.Output != want {
			t.Errorf("%s: %v", said, err)
		}
	}
	for _, said := range []string{"1KB", "-1", "17KiB", "much"} {
		f, err := Parse("x.yaml", []byte("archive: {url: 'sqlite:///a', output: "+said+"}\n"), testEnv())
		if err == nil {
			err = f.Check()
		}
		if err == nil {
			t.Errorf("%s is taken", said)
		}
	}
}
