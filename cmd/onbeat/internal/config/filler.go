package config

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/producer"
)

// filler puts a document into settings. It notes what it cannot read and goes on, so that no fault hides another. It walks
// the mappings and lists of settings itself, because the YAML library stops at the first fault of each.
type filler struct {
	doc      *document
	dec      *yaml.Decoder
	ctx      context.Context // for the anchors in it alone
	anchors  map[string]ast.Node
	problems Problems
	noted    map[string]bool
}

// anchorsKey is the key of the anchors in a context: those before the node that is being read.
type anchorsKey struct{}

// decode fills the value to which v points, and returns what it could not read, such as an unknown field.
func (f *document) decode(v any) (list Problems) {
	d := &filler{doc: f, anchors: map[string]ast.Node{}, noted: map[string]bool{}}
	d.dec = yaml.NewDecoder(bytes.NewReader(nil), yaml.DisallowUnknownField(), yaml.AllowDuplicateMapKey())
	d.ctx = context.WithValue(context.Background(), anchorsKey{}, d.anchors)
	defer func() {
		if recover() != nil {
			list = append(d.problems, &Problem{f.name, 0, &invalid{"invalid YAML", ""}})
		}
	}()
	d.fill(f.body, reflect.ValueOf(v).Elem(), f.root)
	return d.problems
}

// fill puts a node into v, which is the value of a path.
func (f *filler) fill(n ast.Node, v reflect.Value, path string) {
	bare, t := f.bare(n), v.Type()
	mapping, isMapping := bare.(ast.MapNode)
	list, isList := bare.(*ast.SequenceNode)
	switch {
	case bare != nil && bare.Type() == ast.NullType:
		v.SetZero()
	case t.Kind() == reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
		f.fill(n, v.Elem(), path)
	case isMapping && t.Kind() == reflect.Struct && t != reflect.TypeFor[moment]():
		f.remember(n)
		v.SetZero() // it replaces what was merged
		f.fields(mapping, targetsOf(v), path)
	case isList && t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		f.remember(n)
		v.Set(reflect.MakeSlice(t, len(list.Values), len(list.Values)))
		for i, one := range list.Values {
			f.fill(one, v.Index(i), fmt.Sprintf("%s[%d]", path, i))
		}
	default:
		f.leaf(n, v, path)
	}
}

// target is where a value of a mapping goes.
type target struct {
	name   string
	v      reflect.Value
	within []target // for a mapping in place of the value
}

// targetsOf are the fields of a struct, in their order.
func targetsOf(v reflect.Value) []target {
	if s, ok := v.Addr().Interface().(*producer.Schedule); ok {
		return entryOf(s)
	}
	list := make([]target, v.NumField())
	for i := range list {
		tag := v.Type().Field(i).Tag
		name, _, _ := strings.Cut(cmp.Or(tag.Get("yaml"), tag.Get("json")), ",")
		list[i] = target{name: name, v: v.Field(i)}
	}
	return list
}

// fields puts the values of a mapping where they belong. A later key replaces an earlier one, which was merged.
func (f *filler) fields(n ast.MapNode, targets []target, path string) {
	var own []uintptr // the fields that this mapping has set itself
	for pairs := n.MapRange(); pairs.Next(); {
		key, value := pairs.Key(), pairs.Value()
		if key.IsMergeKey() {
			f.merge(value, targets, path)
			continue
		}
		name := f.bare(key)
		if name == nil {
			name = key
		}
		text := name.GetToken().Value
		i := slices.IndexFunc(targets, func(t target) bool { return t.name == text })
		if i >= 0 {
			for _, part := range targets[i].within { // it replaces what was merged
				if !slices.Contains(own, part.v.Addr().Pointer()) {
					part.v.SetZero()
				}
			}
			own = append(own, targets[i].v.Addr().Pointer())
			if m, ok := f.bare(value).(ast.MapNode); ok && targets[i].within != nil {
				f.fields(m, targets[i].within, below(path, text))
			} else {
				f.fill(value, targets[i].v, below(path, text))
			}
			continue
		}
		known := make([]string, len(targets))
		for i := range targets {
			known[i] = targets[i].name
		}
		f.note(&Problem{f.doc.name, lineOf(name), refuse(f.doc.pathAt(name.GetToken()), "", "unknown field", wording.Suggest(text, known))})
		if best := wording.Nearest(text, known); best != "" {
			f.doc.aside[below(path, best)] = true
		}
	}
}

func below(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// merge puts the values of a mapping, to which a merge key refers, where they belong.
func (f *filler) merge(n ast.Node, targets []target, path string) {
	mapping, ok := f.bare(n).(ast.MapNode)
	if !ok {
		f.note(&Problem{f.doc.name, lineOf(n), refuse("<<", "", "not a mapping", "name one anchor of a mapping")})
		return
	}
	f.fields(mapping, targets, path)
}

// leaf lets the YAML library read a node.
func (f *filler) leaf(n ast.Node, v reflect.Value, path string) {
	ast.Walk(f, n)
	if alias, ok := n.(*ast.AliasNode); ok {
		n = f.anchors[alias.Value.GetToken().Value]
	}
	read := reflect.New(v.Type())
	if err := f.decode(n, read.Interface()); err != nil {
		f.note(f.doc.broken(err))
		f.doc.aside[path] = true
	}
	v.Set(read.Elem())
}

// decode reads a node. A text is read as it is written: 1.10 is not 1.1. A field that a schedule holds as JSON may be any YAML.
func (f *filler) decode(n ast.Node, into any) error {
	if at := reflect.ValueOf(into); at.Elem().Kind() == reflect.String {
		return at.Convert(reflect.TypeFor[*text]()).Interface().(*text).UnmarshalYAML(f.ctx, n)
	}
	raw, ok := into.(*json.RawMessage)
	if !ok {
		return f.dec.DecodeFromNodeContext(f.ctx, n, into)
	}
	var v any
	err := f.dec.DecodeFromNodeContext(f.ctx, n, &v)
	if err != nil || v == nil {
		return err
	}
	if *raw, err = json.Marshal(v); err != nil {
		return &nodeError{n, "", "cannot be written as JSON", "use no infinite numbers, and only text as keys"}
	}
	return nil
}

// Visit remembers the anchors in a node.
func (f *filler) Visit(n ast.Node) ast.Visitor {
	if a, ok := n.(*ast.AnchorNode); ok && a.Name != nil {
		f.anchors[a.Name.GetToken().Value] = a.Value
	}
	return f
}

// remember lets the YAML library know an anchored node that it does not read itself: a payload may have an alias of it.
func (f *filler) remember(n ast.Node) {
	if _, ok := n.(*ast.AnchorNode); ok {
		_ = f.dec.DecodeFromNodeContext(f.ctx, n, new(any)) // fill notes its faults
	}
}

// bare is a node without its anchor, alias and tag.
func (f *filler) bare(n ast.Node) ast.Node {
	for range maxDepth {
		switch x := n.(type) {
		case *ast.AnchorNode:
			f.Visit(x)
			n = x.Value
		case *ast.TagNode:
			n = x.Value
		case *ast.AliasNode:
			n = f.anchors[x.Value.GetToken().Value]
		case *ast.MappingKeyNode:
			n = x.Value
		default:
			return n
		}
	}
	return n
}

// note notes a problem, once: several aliases may repeat it.
func (f *filler) note(p *Problem) {
	if text := p.Error(); !f.noted[text] {
		f.noted[text] = true
		f.problems = append(f.problems, p)
	}
}

// isAside reports whether the value of a path, or one around it, could not be read. A rule says when by either of two fields.
func (f *document) isAside(path string) bool {
	if rule, ok := strings.CutSuffix(path, ".every"); ok && f.aside[rule+".cron"] {
		return true
	}
	for !f.aside[path] {
		i := strings.LastIndexAny(path, ".[")
		if i <= 0 {
			return false
		}
		path = path[:i]
	}
	return true
}
