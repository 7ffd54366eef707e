package handlers

import (
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/onbeat/onbeat/internal/page"
)

// payloads are those of the handlers that the program brings; nil is of one that takes any.
var payloads = map[string]reflect.Type{
	"http": reflect.TypeFor[httpPayload](), "exec": reflect.TypeFor[execPayload](), "sleep": reflect.TypeFor[sleepPayload](), "echo": nil,
}

func TestReference_listsEachPayloadField(t *testing.T) {
	t.Parallel()
	page.Compare(t, "this test", slices.Sorted(maps.Keys(payloads)), slices.Sorted(maps.Keys(Builtin(BuiltinConfig{AllowExec: true}))))
	for typ, payload := range payloads {
		if payload == nil {
			continue
		}
		heading := "### " + typ
		page.Compare(t, heading, page.Listed(t, page.Table(t, "../docs/reference.md", heading)), knownFields(payload))
	}
}
