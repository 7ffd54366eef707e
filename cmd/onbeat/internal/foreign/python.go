package foreign

import (
	"math"
	"regexp"
	"strconv"
	"strings"
)

// Values of Python that can stand in a settings file: text, float64, bool, nil, pyList, pyDict, pyCall; and unread for all others.
type (
	pyList []any
	pyDict []pyItem
	pyItem struct {
		key   any
		value any
		line  int
	}
	pyCall struct {
		name  string // the last part of a dotted name
		args  []any
		named map[string]any
	}
	// unread is an expression whose value only Python knows.
	unread string
)

// get returns the value of a key that is a text: of several, the last, as in Python.
func (d pyDict) get(key string) (any, bool) {
	if item := d.find(key); item != nil {
		return item.value, true
	}
	return nil, false
}

// find returns the last item of a key, if it is a text.
func (d pyDict) find(key any) *pyItem {
	if _, ok := key.(string); !ok {
		return nil
	}
	for i := len(d) - 1; i >= 0; i-- {
		if d[i].key == key {
			return &d[i]
		}
	}
	return nil
}

var pyToken = regexp.MustCompile(`^(?:[ \t\r\f]|\\\n)*(?:(#[^\n]*)|(\n)|([A-Za-z_][A-Za-z0-9_]*(?:\s*\.\s*[A-Za-z_][A-Za-z0-9_]*)*)|([0-9][0-9_]*\.?[0-9_]*(?:[eE][+-]?[0-9]+)?)|(\*\*|//|[^\s]))`)

var pyPrefix = regexp.MustCompile(`^(?:[ \t\r\f]|\\\n)*([rRbBuUfF]{0,2})("""|'''|"|')`)

// python reads an expression at a place of a file.
type python struct {
	text  string
	at    int
	depth int
}

func (p *python) line() int { return 1 + strings.Count(p.text[:p.at], "\n") }

// peek returns the next token, and where it ends. A text is returned with its opening quote as the token.
func (p *python) peek() (token string, end int) {
	for {
		rest := p.text[p.at:]
		if m := pyPrefix.FindStringSubmatchIndex(rest); m != nil {
			return rest[m[4]:m[5]], p.at + m[1]
		}
		m := pyToken.FindStringSubmatchIndex(rest)
		if m == nil {
			return "", len(p.text)
		}
		if m[2] >= 0 || m[4] >= 0 { // a comment, or the end of a line
			p.at += m[1]
			continue
		}
		for i := 6; i < len(m); i += 2 {
			if m[i] >= 0 {
				return rest[m[i]:m[i+1]], p.at + m[1]
			}
		}
	}
}

// take moves past a token, if it is the next one.
func (p *python) take(token string) bool {
	if next, end := p.peek(); next == token {
		p.at = end
		return true
	}
	return false
}

// value reads an expression up to a comma, a colon or a closing bracket.
func (p *python) value() any {
	began := p.at
	if p.depth++; p.depth > 50 {
		return p.rest(began)
	}
	defer func() { p.depth-- }()
	v := p.operand()
	for {
		op, end := p.peek()
		switch op {
		case ",", ":", ")", "]", "}", "":
			return v
		case "+", "-", "*", "/":
			p.at = end
			a, isNumber := v.(float64)
			b, isNumberToo := p.operand().(float64)
			if !isNumber || !isNumberToo {
				return p.rest(began)
			}
			n := map[string]float64{"+": a + b, "-": a - b, "*": a * b, "/": a / b}[op]
			if v = n; !exact(n) {
				return p.rest(began)
			}
			if op == "*" || op == "/" {
				continue
			}
			if next, _ := p.peek(); next == "*" || next == "/" { // that binds closer
				return p.rest(began)
			}
		default:
			return p.rest(began)
		}
	}
}

// rest moves past an expression that is not read.
func (p *python) rest(began int) any {
	p.at = began
	for open := 0; ; {
		token, end := p.peek()
		switch token {
		case "":
			return unread(p.text[began:])
		case "(", "[", "{":
			open++
		case ")", "]", "}":
			if open--; open < 0 {
				return unread(strings.TrimSpace(p.text[began:p.at]))
			}
		case ",", ":":
			if open == 0 {
				return unread(strings.TrimSpace(p.text[began:p.at]))
			}
		case `"`, `'`, `"""`, `'''`:
			p.literal()
			continue
		}
		p.at = end
	}
}

func (p *python) operand() any {
	began := p.at
	token, end := p.peek()
	switch {
	case token == "":
		return unread("")
	case token == `"` || token == `'` || token == `"""` || token == `'''`:
		text, ok := p.literal()
		for ok { // texts side by side are one
			next, _ := p.peek()
			if next != `"` && next != `'` && next != `"""` && next != `'''` {
				break
			}
			var more string
			more, ok = p.literal()
			text += more
		}
		if !ok {
			return p.rest(began)
		}
		return text
	case token == "-":
		p.at = end
		if n, ok := p.operand().(float64); ok {
			return -n
		}
		return p.rest(began)
	case token == "{":
		p.at = end
		return p.dict(began)
	case token == "[" || token == "(":
		p.at = end
		closing := map[string]string{"[": "]", "(": ")"}[token]
		list, named, ok := p.list(closing)
		if !ok || len(named) > 0 {
			return p.rest(began)
		}
		if token == "(" && len(list) == 1 && !strings.HasSuffix(strings.TrimRight(p.text[began:p.at-1], " \n\t"), ",") {
			return list[0] // in brackets, and no tuple
		}
		return list
	case token[0] >= '0' && token[0] <= '9':
		p.at = end
		n, err := strconv.ParseFloat(strings.ReplaceAll(token, "_", ""), 64)
		if err != nil || !strings.ContainsAny(token, ".eE") && !exact(n) {
			return p.rest(began)
		}
		return n
	case token == "True", token == "False":
		p.at = end
		return token == "True"
	case token == "None":
		p.at = end
		return nil
	case isName(token):
		p.at = end
		if !p.take("(") {
			return p.rest(began)
		}
		args, named, ok := p.list(")")
		if !ok {
			return p.rest(began)
		}
		name := token[strings.LastIndexAny(token, ". \t\n")+1:]
		return pyCall{name, args, named}
	}
	return p.rest(began)
}

// list reads values up to the closing bracket, and those with a name apart.
func (p *python) list(closing string) (list pyList, named map[string]any, ok bool) {
	list, named = pyList{}, map[string]any{}
	for !p.take(closing) {
		if token, _ := p.peek(); token == "" || token == "*" || token == "**" {
			return nil, nil, false
		}
		was := p.at
		name, end := p.peek()
		p.at = end
		if isName(name) && p.take("=") {
			named[name] = p.value()
		} else {
			p.at = was
			list = append(list, p.value())
		}
		if !p.take(",") {
			if next, _ := p.peek(); next != closing {
				return nil, nil, false
			}
		}
	}
	return list, named, true
}

func (p *python) dict(began int) any {
	d := pyDict{}
	for !p.take("}") {
		token, _ := p.peek()
		if token == "" || token == "**" {
			return p.rest(began)
		}
		item := pyItem{line: p.line()}
		item.key = p.value()
		if !p.take(":") {
			return p.rest(began)
		}
		item.value = p.value()
		d = append(d, item)
		if !p.take(",") {
			if next, _ := p.peek(); next != "}" {
				return p.rest(began)
			}
		}
	}
	return d
}

// literal reads a text. It is not ok if the text is one that Python computes, or bytes.
func (p *python) literal() (text string, ok bool) {
	m := pyPrefix.FindStringSubmatchIndex(p.text[p.at:])
	prefix, quote := strings.ToLower(p.text[p.at+m[2]:p.at+m[3]]), p.text[p.at+m[4]:p.at+m[5]]
	p.at += m[1]
	ok = !strings.ContainsAny(prefix, "fb")
	var b strings.Builder
	for p.at < len(p.text) {
		switch rest := p.text[p.at:]; {
		case strings.HasPrefix(rest, quote):
			p.at += len(quote)
			return b.String(), ok
		case rest[0] == '\n' && len(quote) == 1:
			return "", false
		case rest[0] == '\\' && len(rest) > 1 && strings.Contains(prefix, "r"):
			b.WriteString(rest[:2])
			p.at += 2
		case rest[0] == '\\' && len(rest) > 1:
			value, _, tail, err := strconv.UnquoteChar(rest, quote[0])
			if err != nil { // an escape that Go has otherwise
				value, tail, ok = 0, rest[2:], ok && (rest[1] == '\n' || rest[1] == '\'' || rest[1] == '"')
				if rest[1] != '\n' {
					value = rune(rest[1])
				}
			}
			if value != 0 {
				b.WriteRune(value)
			}
			p.at = len(p.text) - len(tail)
		default:
			b.WriteByte(rest[0])
			p.at++
		}
	}
	return "", false
}

// exact reports whether each whole number of that size is read as it is.
func exact(n float64) bool { return math.Abs(n) < 1<<53 }

func isName(token string) bool {
	return token != "" && (token[0] == '_' || token[0] >= 'A' && token[0] <= 'Z' || token[0] >= 'a' && token[0] <= 'z')
}
