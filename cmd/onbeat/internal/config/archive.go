package config

import (
	"context"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/onbeat/onbeat/archive/sqlarchive"
)

// Archive says where the archive is, and what it keeps.
type Archive struct {
	// URL is one that [sqlarchive.Config] takes, or file: and the name of a file that holds one; "" if the file says none.
	URL string
	// Secret says that the URL has a password that is written in the config file.
	Secret bool
	// Keep is how long the archive keeps what it has; zero is the default.
	Keep time.Duration
	// Buffer and Output are Caps.Buffer and Caps.Output of a dispatcher with an archive, in bytes; zero is the default.
	Buffer int64
	Output int
}

type archiveSettings struct {
	URL    text       `yaml:"url"`
	Keep   period     `yaml:"keep"`
	Buffer volume     `yaml:"buffer"`
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

// takeArchive turns the settings into an [Archive].
func (f *File) takeArchive(s *archiveSettings, getenv func(string) string) {
	f.Archive = Archive{Keep: time.Duration(s.Keep), Buffer: int64(s.Buffer), Output: int(s.Output)}
	f.Archive.URL, f.Archive.Secret = f.databaseURL("archive.url", string(s.URL), getenv)
}

// checkArchive refuses an archive that cannot be used.
func (f *File) checkArchive() error {
	c := sqlarchive.Config{URL: f.Archive.URL, Keep: f.Archive.Keep}
	if c.URL == "" && c.Keep == 0 {
		return nil
	}
	if c.URL == "" || strings.HasPrefix(c.URL, FilePrefix) || variable.MatchString(c.URL) {
		c.URL = "sqlite:///elsewhere" // a file, a flag or the environment says it; the rest is checked all the same
	}
	return c.Validate()
}
