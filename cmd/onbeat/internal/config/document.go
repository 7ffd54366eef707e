package config

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/onbeat/onbeat/internal/field"
	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/task"
)

// document is a YAML document that knows the line of everything in it.
type document struct {
	name  string
	root  string // prefix of all paths, for a document that is a part of a config
	body  ast.Node
	lines map[string]int    // path -> line
	paths map[[2]int]string // line and column of a token -> path
	aside map[string]bool   // paths that have no value because it could not be read
}

// parseDocument reads one document. Every error is a [*Problem] that matches [task.ErrInvalid].
func parseDocument(name string, data []byte) (*document, error) {
	f, err := readDocument(name, data)
	var p *Problem
	if errors.As(err, &p) && starred(data, p.Line) {
		return nil, &Problem{name, p.Line, refuse("cron", "", "begins with *, which YAML reads as an alias", `write it in quotes, as in cron: "* 2 * * *"`)}
	}
	return f, err
}

// cronStar is a cron expression without quotes, which YAML cannot read. A word behind the * is the name of an alias.
var cronStar = regexp.MustCompile(`\bcron["']?\s*:\s+\*(\W|$)`)

// starred reports whether a line has a cron expression that begins with * and has no quotes.
func starred(data []byte, line int) bool {
	lines := bytes.SplitN(data, []byte("\n"), line+1)
	return line > 0 && line <= len(lines) && cronStar.Match(lines[line-1])
}

func readDocument(name string, data []byte) (f *document, err error) {
	f = &document{name: name, lines: map[string]int{}, paths: map[[2]int]string{}, aside: map[string]bool{}}
	defer func() {
		if recover() != nil { // a bug of the parser is a fault of the file, and not the end of the process
			f, err = nil, &Problem{name, 0, &invalid{"invalid YAML", ""}}
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
		return nil, f.broken(err)
	}
	for _, doc := range file.Docs {
		switch {
		case doc.Body == nil:
		case f.body != nil:
			return nil, &Problem{name, lineOf(doc.Body), &invalid{"a second YAML document", "keep one document in a file"}}
		default:
			f.body = doc.Body
		}
	}
	if f.body == nil || f.body.Type() == ast.NullType || f.body.Type() == ast.CommentType {
		return nil, &Problem{name, 0, &invalid{"empty", ""}}
	}
	if err := f.checkExpanded(); err != nil {
		return nil, err
	}
	ast.Walk(f, f.body)
	return f, nil
}

// Visit records the line and the path of a node.
func (f *document) Visit(n ast.Node) ast.Visitor {
	path := strings.TrimPrefix(strings.TrimPrefix(n.GetPath(), "$"), ".")
	t := n.GetToken()
	if t == nil || t.Position == nil {
		return f
	}
	if _, known := f.lines[path]; !known {
		f.lines[path] = t.Position.Line
	}
	f.paths[[2]int{t.Position.Line, t.Position.Column}] = path
	return f
}

func lineOf(n ast.Node) int {
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 0
}

// at is err as a problem at a path. A path that the file does not have is put at the nearest one above it.
func (f *document) at(path string, err error) *Problem {
	field := field.Of(err)
	if field == nil {
		return &Problem{f.name, f.line(path), err}
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
	return &Problem{f.name, f.line(path + sub), field}
}

// firstLine is where the document begins.
func (f *document) firstLine() int { return lineOf(f.body) }

// line is the line of a path, or of the nearest path above it.
func (f *document) line(path string) int {
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

// broken is an error of the YAML library as a problem of one line.
func (f *document) broken(err error) *Problem {
	var own *nodeError
	if errors.As(err, &own) {
		return f.at("", &task.FieldError{
			Field: f.pathAt(own.node.GetToken()), Value: own.value, Reason: own.reason, Hint: own.hint,
		})
	}
	var e yaml.Error
	if !errors.As(err, &e) {
		return &Problem{f.name, 0, &invalid{wording.OneLine(err.Error()), ""}}
	}
	t := e.GetToken()
	line := 0
	if t != nil && t.Position != nil {
		line = t.Position.Line
	}
	var typ *yaml.TypeError
	var shape *yaml.UnexpectedNodeTypeError
	switch {
	case errors.As(err, &typ) && t != nil:
		return &Problem{f.name, line, &task.FieldError{Field: f.pathAt(t), Value: shownValue(t.Value), Reason: "not " + wording.Kind(typ.DstType)}}
	case errors.As(err, &shape) && t != nil:
		value := shownValue(t.Value)
		if shape.Expected == ast.SequenceType || shape.Expected == ast.MappingType {
			value = "" // one text in place of a list may be a variable with its value, and in place of a target of notify its URL
		}
		return &Problem{f.name, line, &task.FieldError{
			Field: f.pathAt(t), Value: value, Reason: fmt.Sprintf("must be a %s, not a %s", kindName(shape.Expected), kindName(shape.Actual)),
		}}
	}
	return &Problem{f.name, line, &invalid{wording.OneLine(e.GetMessage()), ""}}
}

// pathAt is the path of the value that a token begins.
func (f *document) pathAt(t *token.Token) string {
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
