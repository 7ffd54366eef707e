package main

import (
	"io"
	"maps"
	"slices"

	"github.com/rs/zerolog"
)

// consoleLog writes the log for people. It adds control sequences for colours, so the terminal's filter cannot run after it: control
// characters in foreign text are made visible before.
func consoleLog(w io.Writer, colour bool) io.Writer {
	return zerolog.ConsoleWriter{Out: unfiltered(w), NoColor: !colour, TimeFormat: "15:04:05.000", FormatPrepare: prepareEvent}
}

// prepareEvent makes an event printable. Texts in fields of their own are quoted by zerolog; those within lists and
// mappings are not, nor are the message and the names of fields.
func prepareEvent(event map[string]any) error {
	for _, name := range slices.Collect(maps.Keys(event)) {
		value := event[name]
		delete(event, name)
		if _, isText := value.(string); !isText || slices.Contains(unquoted, name) {
			value = printableValue(value)
		}
		event[oneCell(name)] = value
	}
	return nil
}

var unquoted = []string{zerolog.MessageFieldName, zerolog.LevelFieldName, zerolog.TimestampFieldName, zerolog.CallerFieldName}

func printableValue(v any) any {
	switch v := v.(type) {
	case string:
		return oneCell(v)
	case []any:
		for i := range v {
			v[i] = printableValue(v[i])
		}
	case map[string]any:
		shown := make(map[string]any, len(v))
		for name, value := range v {
			shown[oneCell(name)] = printableValue(value)
		}
		return shown
	}
	return v
}
