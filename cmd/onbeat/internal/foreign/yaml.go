package foreign

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// YAML writes the jobs as a config of onbeat, each below what it comes from. The namespace may be "".
func (j *Jobs) YAML(namespace string) []byte {
	var b bytes.Buffer
	if namespace != "" {
		fmt.Fprintf(&b, "namespace: %s\n", flow(quoted(namespace)))
	}
	b.WriteString("schedules:")
	if len(j.List) == 0 {
		b.WriteString(" []\n")
	}
	for i := range j.List {
		one := &j.List[i]
		fmt.Fprintf(&b, "\n  # %s\n", comment(one.Place.String()+": "+one.Was))
		before := "  - "
		for _, m := range members(quoted(one.Schedule)) {
			if m.name == "payload" && m.value[0] == '{' && len(m.value) > 2 {
				fmt.Fprintf(&b, "%spayload:\n", before)
				for _, p := range members(m.value) {
					fmt.Fprintf(&b, "      %s: %s\n", flow(quoted(p.name)), flow(p.value))
				}
			} else {
				fmt.Fprintf(&b, "%s%s: %s\n", before, m.name, flow(m.value))
			}
			before = "    "
		}
	}
	return b.Bytes()
}

// quoted writes a value as JSON, with <, > and & as they are.
func quoted(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // there are only texts, numbers and what was JSON
	}
	return bytes.TrimSpace(b.Bytes())
}

type member struct {
	name  string
	value json.RawMessage
}

// members lists those of an object in their order.
func members(object json.RawMessage) (list []member) {
	d := json.NewDecoder(bytes.NewReader(object))
	if _, err := d.Token(); err != nil {
		return nil
	}
	for d.More() {
		var m member
		name, err := d.Token()
		if err != nil || d.Decode(&m.value) != nil {
			return list
		}
		m.name, _ = name.(string)
		list = append(list, m)
	}
	return list
}

// bare is text that YAML reads as text without quotes.
var bare = regexp.MustCompile(`^[A-Za-z_/][A-Za-z0-9_./+-]*$`)

// notText are bare words that YAML, of any version, reads as something else.
var notText = regexp.MustCompile(`(?i)^(true|false|yes|no|on|off|y|n|null)$`)

// duration is text that begins with a digit, as onbeat writes durations.
var duration = regexp.MustCompile(`^([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h|d|w))+$`)

// flow writes JSON as YAML on one line: JSON is YAML, and simple words need no quotes.
func flow(v json.RawMessage) string {
	var text string
	if json.Unmarshal(v, &text) == nil && (bare.MatchString(text) && !notText.MatchString(text) || duration.MatchString(text)) {
		return text
	}
	// YAML has a space behind each : and , outside of texts, and a point in each number with an exponent.
	var b strings.Builder
	inText := false
	for i := 0; i < len(v); i++ {
		if !inText && v[i]|0x20 == 'e' {
			if before := strings.TrimRight(b.String(), "0123456789"); len(before) < b.Len() && !strings.HasSuffix(before, ".") {
				b.WriteString(".0")
			}
		}
		b.WriteByte(v[i])
		switch {
		case inText && v[i] == '\\':
			i++
			b.WriteByte(v[i])
		case v[i] == '"':
			inText = !inText
		case !inText && (v[i] == ':' || v[i] == ','):
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// comment makes a comment of any text: one line of characters that can be printed.
func comment(text string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n':
			return ' '
		case r < ' ', r >= 0x7f && r < 0xa0, r == 0x2028, r == 0x2029, r == 0xfeff:
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "?")))
}
