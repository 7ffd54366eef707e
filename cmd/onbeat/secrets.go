package main

import (
	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/store"
)

// An error quotes what it refuses, and that may be a URL with a password that was put in the wrong place: as a namespace,
// as a file, where no argument belongs. So no error becomes text with a URL as it is, in the log either.
func init() {
	zerolog.ErrorMarshalFunc = func(err error) any { return store.RedactedText(err.Error()) }
}

// said is an error as a person reads it: one line, without passwords.
func said(err error) string { return store.RedactedText(wording.OneLine(explain(err))) }
