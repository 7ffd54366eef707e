package handlers

import (
	"cmp"
	"encoding/base64"
	"errors"
	"net/url"
	"slices"
	"strconv"

	"github.com/onbeat/onbeat/task"
)

// Hide returns an error whose text may be logged and kept: with *** in the place of what is secret of the task's payload
// ([task.Task.Secret]). It knows a value as it is, and as JSON, Go, a URL or base64 write it; an error that spells it in another way
// shows it. It hides the start of a value from the eighth character on, and leaves values of one or two characters, which would be
// found anywhere. The error wraps err; a [*task.FieldError] within it is found without what is secret too.
func Hide(t *task.Task, err error) error {
	if err == nil {
		return nil
	}
	secrets, ok := payloadSecrets(t)
	if !ok {
		return hidden{err: err, text: tooMany, veil: func(string) string { return tooMany }}
	}
	if len(secrets) == 0 {
		return err
	}
	veil := func(text string) string { return hide(text, secrets, len(text)) }
	return hidden{err: err, text: veil(err.Error()), veil: veil}
}

// payloadSecrets returns what is secret of a task's payload, in each spelling, and false if that is too much to look for.
func payloadSecrets(t *task.Task) (list []secret, ok bool) {
	if len(t.Secret) == 0 {
		return nil, true
	}
	values := task.SecretValues(t.Payload, t.Secret)
	if len(values) > mostHidden {
		return nil, false
	}
	return spellings(values), true
}

// mostHidden is the most values of one payload that are looked for. With more of them the text is left out.
const mostHidden = 1000

const tooMany = "(not shown: the payload has more than 1,000 secret values)"

// shortest is the length of the shortest value that is looked for.
const shortest = 3

// spellings lists the values in each way in which an error may write them, the longest first.
func spellings(values []string) (list []secret) {
	for _, v := range values {
		if len(v) < shortest {
			continue
		}
		quoted := strconv.Quote(v)
		for _, spelt := range []string{
			v, jsonText(v), quoted[1 : len(quoted)-1], url.QueryEscape(v), url.PathEscape(v),
			base64.StdEncoding.EncodeToString([]byte(v)), base64.URLEncoding.EncodeToString([]byte(v)),
		} {
			list = append(list, secret{value: spelt})
		}
	}
	slices.SortFunc(list, func(a, b secret) int { return cmp.Or(len(b.value)-len(a.value), cmp.Compare(a.value, b.value)) })
	return slices.Compact(list)
}

// hidden is an error under a text without secrets.
type hidden struct {
	err  error
	text string
	veil func(string) string
}

func (h hidden) Error() string { return h.text }
func (h hidden) Unwrap() error { return h.err }

// Veil hides in a text what is secret, for who writes the errors within this one by themselves.
func (h hidden) Veil(text string) string { return h.veil(text) }

// As finds a field error without secrets: its value would be shown.
func (h hidden) As(target any) bool {
	to, ok := target.(**task.FieldError)
	if !ok {
		return false
	}
	found, ok := errors.AsType[*task.FieldError](h.err)
	if !ok {
		return false
	}
	*to = &task.FieldError{Field: found.Field, Value: h.veil(found.Value), Reason: h.veil(found.Reason), Hint: found.Hint}
	return true
}
