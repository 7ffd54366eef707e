package config

import (
	"fmt"

	"github.com/goccy/go-yaml/ast"
)

// expansion measures a file with its aliases written out.
type expansion struct {
	file  *document
	open  map[string]bool // anchors around the node that is being measured
	sizes map[string]size // by anchor
	total size
}

type size struct{ nodes, bytes int }

func (s size) plus(t size) size { return size{s.nodes + t.nodes, s.bytes + t.bytes} }

// checkExpanded refuses a file that is too large with its aliases written out, and an alias of nothing or of itself.
func (f *document) checkExpanded() error {
	e := &expansion{file: f, open: map[string]bool{}, sizes: map[string]size{}}
	_, err := e.of(f.body)
	return err
}

// of is the size of a node.
func (e *expansion) of(n ast.Node) (size, error) {
	switch n := n.(type) {
	case *ast.MappingNode:
		return sum(e, n, n.Values)
	case *ast.MappingValueNode:
		return sum(e, n, []ast.Node{n.Key, n.Value})
	case *ast.MappingKeyNode:
		return e.of(n.Value)
	case *ast.SequenceNode:
		return sum(e, n, n.Values)
	case *ast.TagNode:
		return e.of(n.Value)
	case *ast.AnchorNode:
		return e.anchor(n)
	case *ast.AliasNode:
		return e.alias(n)
	case nil:
		return size{}, nil
	}
	s := size{nodes: 1}
	if t := n.GetToken(); t != nil {
		s.bytes = len(t.Value)
	}
	return s, e.add(n, s)
}

// sum is the size of a node and its parts.
func sum[N ast.Node](e *expansion, n ast.Node, parts []N) (size, error) {
	all := size{nodes: 1}
	if err := e.add(n, all); err != nil {
		return all, err
	}
	for _, part := range parts {
		s, err := e.of(part)
		if err != nil {
			return all, err
		}
		all = all.plus(s)
	}
	return all, nil
}

func (e *expansion) anchor(n *ast.AnchorNode) (size, error) {
	name := n.Name.GetToken().Value
	outer := e.open[name]
	e.open[name] = true
	s, err := e.of(n.Value)
	e.open[name], e.sizes[name] = outer, s
	return s, err
}

func (e *expansion) alias(n *ast.AliasNode) (size, error) {
	name := n.Value.GetToken().Value
	if e.open[name] {
		return size{}, e.file.bound(lineOf(n), "the alias *"+name+" refers to itself", "write the value out")
	}
	s, known := e.sizes[name]
	if !known {
		return size{}, e.file.bound(lineOf(n), "the alias *"+name+" has no anchor", "define &"+name+" before it")
	}
	return s, e.add(n, s)
}

// add counts a node, and refuses the file once it is too large.
func (e *expansion) add(n ast.Node, s size) error {
	e.total = e.total.plus(s)
	if e.total.nodes > maxNodes || e.total.bytes > maxExpanded {
		return e.file.bound(lineOf(n), fmt.Sprintf("more than %d values or %d MiB of text after its aliases are expanded", maxNodes, maxExpanded>>20),
			"use fewer aliases, or split the file")
	}
	return nil
}
