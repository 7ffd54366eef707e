package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"github.com/onbeat/onbeat/internal/input"
	"github.com/onbeat/onbeat/internal/strictjson"
)

// payloadHelp lists the forms of a --payload. They cannot be confused, because no JSON begins with an @.
const payloadHelp = "JSON, or @FILE of a file that holds it, or @- for stdin."

// payloadFlag returns the JSON of a --payload.
func (a *app) payloadFlag(ctx context.Context, value string) (json.RawMessage, error) {
	if value == "" {
		return nil, nil
	}
	hint := `text needs quotes of its own: --payload '"text"'`
	data, shown := []byte(value), "" // JSON with a fault may have a secret in a header
	if name, isFile := strings.CutPrefix(value, "@"); isFile {
		var err error
		if data, err = a.payloadFile(ctx, name); err != nil {
			return nil, err
		}
		shown, hint = value, "the file has to hold one JSON value"
	}
	if !json.Valid(data) {
		return nil, refuse("payload", shown, "not JSON", hint)
	}
	return bytes.TrimSpace(data), strictjson.Check(data, "payload", nil)
}

func (a *app) payloadFile(ctx context.Context, name string) ([]byte, error) {
	if name == "-" {
		return input.All(a.stdin(ctx), "stdin", "payload")
	}
	return input.File(ctx, name, "payload")
}
