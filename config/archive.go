package config

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/onbeat/onbeat/archive"
)

// Archive says where the archive is, and what it keeps.
type Archive struct {
	// URL is one that [archive.Config] takes, or file: and the name of a file that holds one; "" if the file says none.
	URL string
	// Secret says that the URL has a password that is written in the config file.
	Secret bool
	// Keep is how long the archive keeps what it has; zero is the default.
	Keep time.Duration
	// Buffer and Output are Caps.Archive and Caps.Output of a dispatcher with an archive; zero is the default.
	Buffer, Output int
}

type archiveSettings struct {
	URL    text       `yaml:"url"`
	Keep   period     `yaml:"keep"`
	Buffer *integer   `yaml:"buffer"`
	Output outputSize `yaml:"output"`
}

// outputSize is a volume of which zero is nothing at all: -1, as in Caps.Output.
type outputSize volume

// UnmarshalYAML reads the text of a plain value.
func (s *outputSize) UnmarshalYAML(ctx context.Context, n ast.Node) error {
	if text, _, err := scalar(ctx, n); err == nil && text == "0" {
		*s = -1
		return nil
	}
	return (*volume)(s).UnmarshalYAML(ctx, n)
}

// takeArchive makes of the settings what a program takes.
func (f *File) takeArchive(s *archiveSettings, getenv func(string) string) {
	f.Archive = Archive{Keep: time.Duration(s.Keep), Output: int(s.Output)}
	f.Archive.URL, f.Archive.Secret = f.databaseURL("archive.url", string(s.URL), getenv)
	if s.Buffer != nil {
		f.Archive.Buffer = int(*s.Buffer)
		if *s.Buffer < 1 {
			f.problems = append(f.problems, f.doc.at("", refuse("archive.buffer", fmt.Sprint(*s.Buffer), "out of range", "1 or more; leave it out for the default")))
		}
	}
}

// checkArchive refuses an archive that cannot be used.
func (f *File) checkArchive() error {
	c := archive.Config{URL: f.Archive.URL, Keep: f.Archive.Keep}
	if c.URL == "" || strings.HasPrefix(c.URL, FilePrefix) || variable.MatchString(c.URL) {
		c.URL = "sqlite:///elsewhere" // a file, a flag or the environment says it; the rest is checked all the same
	}
	caps := f.Dispatcher.Caps
	caps.Archive, caps.Output = max(f.Archive.Buffer, 0), f.Archive.Output
	caps.Events = 0 // judged by itself
	return errors.Join(c.Validate(), caps.Validate())
}
