package config

import (
	"fmt"

	"github.com/goccy/go-yaml/token"
)

// outline follows the tokens of a file, and counts the work that they would give the parser.
type outline struct {
	file   *document
	tokens token.Tokens

	levels   []outlineLevel // the lists and mappings that are open
	path     int            // bytes of the keys that lead here
	prefixes int            // tags and anchors in a row
	most     int            // keys in a mapping
	keyWork  int
	pathWork int
	nulls    int
}

// outlineLevel is an open list or mapping.
type outlineLevel struct {
	flow   bool // in brackets or braces
	list   bool
	column int
	keys   int
	name   int // bytes of its last key
}

// checkTokens refuses tokens that would take too long to parse, or too much of the stack.
func (f *document) checkTokens(tokens token.Tokens) error {
	o := &outline{file: f, tokens: tokens}
	for i, t := range tokens {
		if i >= maxNodes {
			return f.bound(t.Position.Line, fmt.Sprintf("more than %d YAML tokens", maxNodes), "split the file")
		}
		if err := o.see(i, t); err != nil {
			return err
		}
	}
	return nil
}

func (o *outline) see(i int, t *token.Token) error {
	switch t.Type {
	case token.MappingStartType, token.SequenceStartType:
		o.push(outlineLevel{flow: true})
	case token.MappingEndType, token.SequenceEndType:
		o.closeFlow()
	case token.SequenceEntryType:
		o.block(t.Position.Column, true)
	case token.MappingKeyType: // a question mark; its colon is on a line of its own
		o.count(o.block(t.Position.Column, false))
	case token.MappingValueType:
		o.key(i)
	}
	if t.Type == token.TagType || t.Type == token.AnchorType || t.Type == token.MappingKeyType {
		o.prefixes++
	} else if i == 0 || o.tokens[i-1].Type != token.AnchorType { // that is its name
		o.prefixes = 0
	}
	if o.leavesEmpty(i) {
		o.nulls++
	}
	o.pathWork += o.path
	return o.refusal(t.Position.Line)
}

func (o *outline) refusal(line int) error {
	switch {
	case len(o.levels) > maxDepth || o.prefixes > maxDepth:
		return o.file.bound(line, fmt.Sprintf("more than %d nested lists and mappings", maxDepth), "write deeper data as text in the payload")
	case o.most > maxKeys || o.keyWork > maxKeyWork:
		return o.file.bound(line, fmt.Sprintf("more than %d keys in a mapping, or too many in several large ones", maxKeys), "use a list, which has no such limit")
	case o.pathWork > maxPathBytes:
		return o.file.bound(line, "too many values under long keys", "shorten the keys")
	case int64(o.nulls)*int64(len(o.tokens)) > maxNullWork:
		return o.file.bound(line, "too many empty values", "remove them, or split the file")
	}
	return nil
}

func (o *outline) push(l outlineLevel) { o.levels = append(o.levels, l) }

func (o *outline) pop() {
	last := len(o.levels) - 1
	o.path -= o.levels[last].name
	o.levels = o.levels[:last]
}

// closeFlow ends the innermost brackets or braces, and all within.
func (o *outline) closeFlow() {
	for len(o.levels) > 0 {
		flow := o.levels[len(o.levels)-1].flow
		o.pop()
		if flow {
			return
		}
	}
}

// block is at an entry of a list, or at a key, in a column. It closes the levels that are indented more, and opens a level where
// none is open there.
func (o *outline) block(column int, list bool) *outlineLevel {
	for len(o.levels) > 0 {
		top := &o.levels[len(o.levels)-1]
		if top.flow || top.column < column || top.column == column && (top.list == list || list) {
			break
		}
		o.pop()
	}
	if n := len(o.levels); n == 0 || o.levels[n-1].flow && list || !o.levels[n-1].flow && (o.levels[n-1].column != column || o.levels[n-1].list != list) {
		o.push(outlineLevel{column: column, list: list})
	}
	return &o.levels[len(o.levels)-1]
}

// key is at the colon behind a key.
func (o *outline) key(colon int) {
	if colon == 0 {
		return
	}
	var level *outlineLevel
	if t := o.tokens[colon]; o.tokens[colon-1].Position.Line != t.Position.Line {
		level = o.block(t.Position.Column, false)
	} else {
		level = o.block(o.keyColumn(colon), false)
		o.count(level)
	}
	name := len(o.tokens[colon-1].Value)
	o.path += name - level.name
	level.name = name
}

func (o *outline) count(level *outlineLevel) {
	level.keys++
	if !level.flow { // keys within braces the parser takes one by one
		o.most = max(o.most, level.keys)
		o.keyWork += level.keys
	}
}

// keyColumn is where the key before a colon begins, with its tags and anchors.
func (o *outline) keyColumn(colon int) int {
	i := colon - 1
	line := o.tokens[i].Position.Line
	for i > 0 && o.tokens[i-1].Position.Line == line {
		switch {
		case o.tokens[i-1].Type == token.TagType, o.tokens[i-1].Type == token.AnchorType, o.tokens[i-1].Type == token.AliasType:
			i--
		case i > 1 && o.tokens[i-2].Type == token.AnchorType && o.tokens[i-2].Position.Line == line:
			i -= 2
		default:
			return o.tokens[i].Position.Column
		}
	}
	return o.tokens[i].Position.Column
}

// leavesEmpty reports whether the mark of an entry or a value has no value behind it. A list in the column of
// its key it takes for none.
func (o *outline) leavesEmpty(i int) bool {
	t := o.tokens[i]
	if t.Type != token.SequenceEntryType && t.Type != token.MappingValueType {
		return false
	}
	if i+1 == len(o.tokens) {
		return true
	}
	next, column := o.tokens[i+1], t.Position.Column
	if t.Type == token.MappingValueType && i > 0 {
		column = o.keyColumn(i)
	}
	return next.Position.Line != t.Position.Line && next.Position.Column <= column
}
