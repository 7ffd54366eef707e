package main

import (
	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/internal/secret"
	"github.com/onbeat/onbeat/internal/wording"
)

// An error quotes the value that it refuses. That may be a URL with a password that the user put in the wrong place: as a
// namespace, as a file, or as an argument too many. So each error is printed, and logged, without the passwords of URLs.
func init() {
	zerolog.ErrorMarshalFunc = func(err error) any { return secret.Text(err.Error()) }
}

// said returns the text of an error for a person: one line, without passwords.
func said(err error) string { return secret.Text(wording.OneLine(explain(err))) }
