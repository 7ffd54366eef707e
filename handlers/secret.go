package handlers

import (
	"github.com/onbeat/onbeat/internal/field"
	"github.com/onbeat/onbeat/internal/secret"
	"github.com/onbeat/onbeat/task"
)

// Hide returns an error whose text may be logged and kept: with *** in the place of what is secret of the task's payload
// ([task.Secret]). It knows a value as it is, and as JSON, Go, a URL, HTML, hex or base64 write it. It also knows the parts of a
// value that a service may repeat: the words of a header, the login in its base64, and the parts of a URL with its host. An
// error that spells a value in another way shows it. It hides the start of a value from the eighth character on, and leaves values of
// one or two characters, which would be found anywhere. The error wraps err; a [*task.FieldError] within it is found without what
// is secret too.
func Hide(t *task.Task, err error) error {
	if err == nil {
		return nil
	}
	return field.Veil(secret.OfPayload(t.Payload, t.Secret), err)
}
