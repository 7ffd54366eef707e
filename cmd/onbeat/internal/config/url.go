package config

import (
	"errors"
	"net/url"
	"strings"

	"github.com/onbeat/onbeat/internal/private"
)

// maxURLFile is more bytes than any URL has.
const maxURLFile = 16 << 10

// ReadURL returns the URL of a field itself: of file: and a name it reads the file, which holds the URL on a line of its own. The file
// must be private: a user who can write it decides where tasks go, and which tasks come. No error shows the URL.
func ReadURL(field, raw, hint string) (string, error) {
	name, in := strings.CutPrefix(raw, FilePrefix)
	if !in {
		return raw, nil
	}
	data, err := private.ReadLinked(name, maxURLFile)
	if err != nil {
		return "", RefuseFile(field, raw, err, hint)
	}
	held := strings.TrimSpace(string(data))
	if held == "" || strings.ContainsAny(held, "\r\n") || strings.HasPrefix(held, FilePrefix) {
		return "", refuse(field, raw, "does not hold one URL on a line of its own", hint)
	}
	return held, nil
}

// RefuseFile refuses a file of the user's own, which the value of a field names, and says why.
func RefuseFile(field, value string, err error, hint string) error {
	own, ok := errors.AsType[*private.Refusal](err)
	switch {
	case !ok:
		return refuse(field, value, reasonOf(err), hint)
	case own.Name != strings.TrimPrefix(value, FilePrefix):
		return refuse(field, value, own.Name+" "+own.Reason, own.Hint)
	}
	return refuse(field, value, own.Reason, own.Hint)
}

// databaseURL is the URL of an SQL database with environment variables put in, and with relative names of files in the folder of
// the config. Secret says that a password is written in the config itself.
func (f *File) databaseURL(field, raw string, getenv func(string) string) (at string, secret bool) {
	bare := variable.ReplaceAllString(raw, "")
	return f.placeDatabase(f.expanded(field, raw, getenv)), hasPassword(bare) || ParamsOf(bare).Get("password") != ""
}

func (f *File) placeDatabase(raw string) string {
	if name, in := strings.CutPrefix(raw, FilePrefix); in {
		return FilePrefix + f.path(name)
	}
	name, is := strings.CutPrefix(raw, "sqlite://")
	path, err := url.PathUnescape(name)
	if !is || err != nil || path == "" || strings.HasSuffix(path, "/") || strings.ContainsAny(name, "?#:") {
		return raw // the package that opens it refuses a bad URL
	}
	return "sqlite://" + (&url.URL{Path: f.path(path)}).EscapedPath()
}
