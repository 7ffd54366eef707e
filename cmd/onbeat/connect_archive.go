package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/onbeat/onbeat/archive"
	"github.com/onbeat/onbeat/archive/sqlarchive"
	"github.com/onbeat/onbeat/cmd/onbeat/internal/config"
)

// archiveOf sets the archive from the flag, or else from the environment and the config, which must agree, as for Redis. Without
// any of them there is none.
func (a *app) archiveOf(file *config.File, t *target) error {
	if a.ownRedis && a.Archive == "" {
		return nil
	}
	said, env := file.Archive.URL, a.env("ONBEAT_ARCHIVE")
	if f, in := inFile(env); in {
		env = f.absolute()
	}
	if a.Archive == "" && env != "" && said != "" && env != said {
		return file.At(refuse("archive.url", shownArchive(said), fmt.Sprintf("ONBEAT_ARCHIVE says %q", shownArchive(env)),
			"unset the variable, leave archive.url out of the config, or decide with --archive"))
	}
	url, err := archiveURL(cmp.Or(a.Archive, env, said))
	if url == "" || err != nil {
		return err
	}
	own := sqlarchive.Config{URL: url, Keep: file.Archive.Keep, AsIs: true}
	if err := own.Validate(); err != nil {
		return file.At(err)
	}
	t.cfg.Archive, t.cfg.Caps.Buffer, t.cfg.Caps.Output = own, file.Archive.Buffer, file.Archive.Output
	if file.Archive.Secret {
		t.archive = file.Name
	}
	return nil
}

// kept returns an archive as an instance uses it: it makes and migrates the tables. Commands leave them as they are.
func kept(a archive.Opener) archive.Opener {
	if own, ok := a.(sqlarchive.Config); ok {
		own.AsIs = false
		return own
	}
	return a
}

// archiveURL returns the URL itself, read from its file if it names one.
func archiveURL(url string) (string, error) {
	return config.ReadURL("archive.url", url, "name a file of your own that holds the URL of an archive")
}

// shownArchive returns a URL without its password.
func shownArchive(url string) string {
	if _, in := inFile(url); in {
		return url
	}
	return sqlarchive.Config{URL: url}.String()
}

// archiveFileOf reports why the file with the URL of the archive cannot be used, if the config names such a file.
func archiveFileOf(f *config.File) error {
	if !strings.HasPrefix(f.Archive.URL, config.FilePrefix) {
		return nil
	}
	url, err := archiveURL(f.Archive.URL)
	if err == nil {
		err = sqlarchive.Config{URL: url, Keep: f.Archive.Keep}.Validate()
	}
	if err != nil {
		return f.At(err)
	}
	return nil
}
