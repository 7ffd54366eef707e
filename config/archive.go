package config

import (
	"errors"
	"fmt"
	"strings"
	"time"

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
	URL    text     `yaml:"url"`
	Keep   period   `yaml:"keep"`
	Buffer volume   `yaml:"buffer"`
	Output *integer `yaml:"output"`
}

// takeArchive makes of the settings what a program takes.
func (f *File) takeArchive(s *archiveSettings, getenv func(string) string) {
	f.Archive = Archive{Keep: time.Duration(s.Keep), Buffer: int64(s.Buffer)}
	f.Archive.URL, f.Archive.Secret = f.databaseURL("archive.url", string(s.URL), getenv)
	if s.Output != nil {
		f.Archive.Output = int(*s.Output)
		switch {
		case *s.Output < 0:
			f.problems = append(f.problems, f.doc.at("", refuse("archive.output", fmt.Sprint(*s.Output), "negative", "bytes; 0 is none")))
		case *s.Output == 0:
			f.Archive.Output = -1
		}
	}
}

// checkArchive refuses an archive that cannot be used.
func (f *File) checkArchive() error {
	c := sqlarchive.Config{URL: f.Archive.URL, Keep: f.Archive.Keep}
	if c.URL == "" || strings.HasPrefix(c.URL, FilePrefix) || variable.MatchString(c.URL) {
		c.URL = "sqlite:///elsewhere" // a file, a flag or the environment says it; the rest is checked all the same
	}
	caps := f.Dispatcher.Caps
	caps.Buffer, caps.Output = f.Archive.Buffer, f.Archive.Output
	caps.Events = 0 // judged by itself
	return errors.Join(c.Validate(), caps.Validate())
}
