package handlers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/onbeat/onbeat/internal/field"
	"github.com/onbeat/onbeat/internal/secret"
	"github.com/onbeat/onbeat/internal/sign"
)

// ErrEnv is returned by the http handler when a payload refers to an environment variable that this instance does not pass
// on, or does not have. Another instance may, so the run is tried again.
var ErrEnv = errors.New("environment variable cannot be used")

// reference is ${NAME} in a header or in the body of a payload: the value of an environment variable, at the run. $${NAME} is
// the text ${NAME} itself.
var reference = regexp.MustCompile(`\$?\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// HTTPEnv lists, sorted, the environment variables to which a payload of http refers. A payload that [HTTP] refuses refers to
// none.
func HTTPEnv(payload []byte) []string {
	c, err := parseHTTP(payload)
	if err != nil {
		return nil
	}
	return c.env
}

// refers lists the names to which a text refers, and reports whether there is anything to resolve: references, or escaped ones.
func refers(text string) (names []string, found bool) {
	if !strings.Contains(text, "${") {
		return nil, false
	}
	for _, match := range reference.FindAllStringSubmatch(text, -1) {
		found = true
		if !strings.HasPrefix(match[0], "$$") {
			names = append(names, match[1])
		}
	}
	return names, found
}

// resolve is a text with values in the place of its references.
func resolve(text string, value func(name string) string) string {
	if !strings.Contains(text, "${") {
		return text
	}
	return reference.ReplaceAllStringFunc(text, func(match string) string {
		if strings.HasPrefix(match, "$$") {
			return match[1:]
		}
		return value(match[2 : len(match)-1])
	})
}

// readEnv notes to which variables the headers, the body and the key refer.
func (c *httpCall) readEnv(*httpPayload) error {
	note := func(text string) {
		names, found := refers(text)
		c.env, c.template = append(c.env, names...), c.template || found
	}
	for _, values := range c.header {
		note(values[0])
	}
	note(c.body)
	if c.keyEnv != "" {
		c.env, c.template = append(c.env, c.keyEnv), true
	}
	slices.Sort(c.env)
	c.env = slices.Compact(c.env)
	return nil
}

// resolved is the call with the values that its variables have now. Only allowed variables have one: without that, a payload
// could send the environment of the instance anywhere.
func (c *httpCall) resolved(allowed []string) (*httpCall, error) {
	if !c.template {
		return c, nil
	}
	values := make(map[string]string, len(c.env))
	for _, name := range c.env {
		if !slices.Contains(allowed, name) {
			return nil, c.noEnv(name, "is not in http.pass_env of this instance (add it there, or write $${"+name+"} for the text)")
		}
		if values[name] = os.Getenv(name); values[name] == "" {
			return nil, c.noEnv(name, "is not set in the environment of this instance")
		}
	}
	r := *c
	if c.keyEnv != "" {
		var err error
		if r.key, err = sign.Key(values[c.keyEnv]); err != nil || len(r.key) < sign.LeastKey {
			return nil, c.noEnv(c.keyEnv, "is not a key: text of 16 bytes or more, or whsec_ and the base64 of so many")
		}
	}
	r.header = make(http.Header, len(c.header))
	for key, list := range c.header {
		names, _ := refers(list[0])
		for _, name := range names {
			if strings.ContainsFunc(values[name], notInHeader) {
				return nil, c.noEnv(name, "has a control character, which a header cannot carry (a line break at its end?)")
			}
		}
		r.header[key] = []string{resolve(list[0], func(name string) string { return values[name] })}
	}
	r.body = resolve(c.body, func(name string) string {
		if c.json {
			return jsonText(values[name])
		}
		return values[name]
	})
	r.secrets = &secret.Set{}
	for name, value := range values {
		r.secrets.AddNamed(name, value)
	}
	return &r, nil
}

func (c *httpCall) noEnv(name, why string) error {
	return fmt.Errorf("%s: %w: ${%s} %s", c.target, ErrEnv, name, why)
}

// jsonText is a text as it stands between the quotes of JSON.
func jsonText(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string always encodes
	return strings.TrimSuffix(strings.TrimPrefix(b.String(), `"`), "\"\n")
}

// quotation is what an error of net/http quotes of an answer that is not HTTP.
var quotation = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// veil makes the text of an error that may quote an answer fit to be kept: without what was sent as a secret. A quotation may have a
// part of one, so it is left out.
func (c *httpCall) veil(err error) error {
	if c.secrets.Empty() {
		return err
	}
	return field.VeilAs(c.secrets, quotation.ReplaceAllString(c.secrets.Hide(err.Error()), `"…"`), err)
}
