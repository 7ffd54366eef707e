package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/onbeat/onbeat/task"
)

// yamlFile is a YAML document that knows where everything in it stands.
type yamlFile struct {
	name    string
	root    string // what paths begin with, for a document that is only a part
	body    ast.Node
	lines   map[string]int    // path -> line
	paths   map[[2]int]string // line and column of a token -> path
	anchors map[string]ast.Node
}

// fileError is what is wrong at a place in a file.
type fileError struct {
	file string
	line int
	err  error
}

func (e *fileError) Error() string {
	if e.line == 0 {
		return e.file + ": " + e.err.Error()
	}
	return fmt.Sprintf("%s:%d: %v", e.file, e.line, e.err)
}

func (e *fileError) Unwrap() error { return e.err }

// parseYAML reads one document. Every error is a [*fileError] that counts as asked wrongly.
func parseYAML(name string, data []byte) (f *yamlFile, err error) {
	f = &yamlFile{name: name, lines: map[string]int{}, paths: map[[2]int]string{}, anchors: map[string]ast.Node{}}
	defer func() {
		if recover() != nil { // the parser has met something its authors have not
			f, err = nil, &fileError{name, 0, &usageError{"not YAML that can be read", ""}}
		}
	}()
	if err := f.checkText(data); err != nil {
		return nil, err
	}
	tokens := lexer.Tokenize(string(data))
	if err := f.checkTokens(tokens); err != nil {
		return nil, err
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		return nil, f.broken(err, nil)
	}
	for _, doc := range file.Docs {
		switch {
		case doc.Body == nil:
		case f.body != nil:
			return nil, &fileError{name, lineOf(doc.Body), &usageError{"a second document", "one file holds one"}}
		default:
			f.body = doc.Body
		}
	}
	if f.body == nil || f.body.Type() == ast.NullType || f.body.Type() == ast.CommentType {
		return nil, &fileError{name, 0, &usageError{"empty", ""}}
	}
	if err := f.checkExpanded(); err != nil {
		return nil, err
	}
	ast.Walk(f, f.body)
	return f, nil
}

// Visit notes where a node stands.
func (f *yamlFile) Visit(n ast.Node) ast.Visitor {
	path := strings.TrimPrefix(strings.TrimPrefix(n.GetPath(), "$"), ".")
	t := n.GetToken()
	if t == nil || t.Position == nil {
		return f
	}
	if _, known := f.lines[path]; !known {
		f.lines[path] = t.Position.Line
	}
	f.paths[[2]int{t.Position.Line, t.Position.Column}] = path
	if a, ok := n.(*ast.AnchorNode); ok && a.Name != nil {
		f.anchors[a.Name.GetToken().Value] = a.Value
	}
	return f
}

func lineOf(n ast.Node) int {
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 0
}

type anchorsKey struct{}

// decode fills v, strictly.
func (f *yamlFile) decode(v any) (err error) {
	defer func() {
		if recover() != nil {
			err = &fileError{f.name, 0, &usageError{"not YAML that can be read", ""}}
		}
	}()
	ctx := context.WithValue(context.Background(), anchorsKey{}, f.anchors)
	d := yaml.NewDecoder(bytes.NewReader(nil), yaml.DisallowUnknownField(), yaml.AllowDuplicateMapKey())
	if err := d.DecodeFromNodeContext(ctx, f.body, v); err != nil {
		return f.broken(err, reflect.TypeOf(v))
	}
	return nil
}

// at says that err is about what stands at a path, or would.
func (f *yamlFile) at(path string, err error) error {
	field := fieldError(err)
	if field == nil {
		return &fileError{f.name, f.line(path), err}
	}
	sub := strings.ReplaceAll(field.Field, " ", ".") // "cron minute", "dst gap"
	switch {
	case path == "":
	case field.Field == "":
		field = &task.FieldError{Field: path, Value: field.Value, Reason: field.Reason, Hint: field.Hint}
	default:
		field = &task.FieldError{Field: path + "." + field.Field, Value: field.Value, Reason: field.Reason, Hint: field.Hint}
		path += "."
	}
	return &fileError{f.name, f.line(path + sub), field}
}

// line is where a path stands, or else the nearest thing that holds it.
func (f *yamlFile) line(path string) int {
	path = strings.TrimPrefix(strings.TrimPrefix(path, f.root), ".")
	for {
		if n, ok := f.lines[path]; ok {
			return n
		}
		i := strings.LastIndexAny(path, ".[")
		if i <= 0 {
			return 0
		}
		path = path[:i]
	}
}

// broken turns what the YAML library says into one line.
func (f *yamlFile) broken(err error, into reflect.Type) error {
	var own *nodeError
	if errors.As(err, &own) {
		return f.at("", &task.FieldError{
			Field: f.pathAt(own.node.GetToken()), Value: own.value, Reason: own.reason, Hint: own.hint,
		})
	}
	var e yaml.Error
	if !errors.As(err, &e) {
		return &fileError{f.name, 0, &usageError{oneLine(err.Error()), ""}}
	}
	t := e.GetToken()
	line := 0
	if t != nil && t.Position != nil {
		line = t.Position.Line
	}
	var unknown *yaml.UnknownFieldError
	var typ *yaml.TypeError
	var shape *yaml.UnexpectedNodeTypeError
	switch {
	case errors.As(err, &unknown) && t != nil:
		path := f.pathAt(t)
		parent := strings.TrimPrefix(strings.TrimSuffix(strings.TrimSuffix(path, t.Value), "."), f.root)
		return &fileError{f.name, line, &task.FieldError{Field: path, Reason: "unknown field", Hint: suggest(t.Value, fieldsAt(into, parent))}}
	case errors.As(err, &typ) && t != nil:
		return &fileError{f.name, line, &task.FieldError{Field: f.pathAt(t), Value: shownValue(t.Value), Reason: "not " + nounOf(typ.DstType)}}
	case errors.As(err, &shape) && t != nil:
		return &fileError{f.name, line, &task.FieldError{
			Field: f.pathAt(t), Value: shownValue(t.Value), Reason: fmt.Sprintf("a %s, where a %s belongs", kindName(shape.Actual), kindName(shape.Expected)),
		}}
	}
	return &fileError{f.name, line, &usageError{oneLine(e.GetMessage()), ""}}
}

// pathAt is the path of what a token begins.
func (f *yamlFile) pathAt(t *token.Token) string {
	if t == nil || t.Position == nil {
		return f.root
	}
	path := f.paths[[2]int{t.Position.Line, t.Position.Column}]
	if path == "" {
		path = strings.Trim(t.Value, "[{-: ")
	}
	if f.root != "" && path != "" {
		if !strings.HasPrefix(path, "[") {
			path = "." + path
		}
		return f.root + path
	}
	return path
}

func shownValue(s string) string { return strings.Trim(s, "[{-: ") }

func kindName(k ast.NodeType) string {
	switch k {
	case ast.MappingType, ast.MappingValueType:
		return "mapping"
	case ast.SequenceType:
		return "list"
	case ast.IntegerType, ast.FloatType:
		return "number"
	case ast.NullType:
		return "null"
	}
	return "plain value"
}

func nounOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Slice:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "a mapping"
	}
	return "text"
}
