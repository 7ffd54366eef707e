package config

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/onbeat/onbeat/internal/field"
	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// nodeError refuses the value of a node. [document.broken] adds the place.
type nodeError struct {
	node                ast.Node
	value, reason, hint string
}

func (e *nodeError) Error() string { return wording.WithHint(e.reason, e.hint) }

// scalar is the text of a plain value, with anchors, aliases and tags seen through.
func scalar(ctx context.Context, n ast.Node) (text string, plain ast.Node, err error) {
	anchors, _ := ctx.Value(anchorsKey{}).(map[string]ast.Node)
	node := n
	for range 8 {
		switch x := node.(type) {
		case *ast.AnchorNode:
			node = x.Value
		case *ast.TagNode:
			node = x.Value
		case *ast.AliasNode:
			node = anchors[x.Value.GetToken().Value]
		case *ast.StringNode:
			return x.Value, node, nil
		case *ast.LiteralNode:
			return x.Value.Value, node, nil
		case *ast.NullNode:
			return "", node, nil
		case ast.ScalarNode:
			return x.GetToken().Value, node, nil
		default:
			return "", nil, &nodeError{node: n, reason: "not a plain value"}
		}
	}
	return "", nil, &nodeError{node: n, reason: "an alias without a value"}
}

// duration is one as [schedule.ParseDuration] reads it.
type duration time.Duration

// UnmarshalYAML reads the text of a plain value.
func (d *duration) UnmarshalYAML(ctx context.Context, n ast.Node) error {
	return unmarshalDuration(ctx, n, d, schedule.ParseDuration)
}

// interval is one as [schedule.ParseEvery] reads it: not zero.
type interval time.Duration

// UnmarshalYAML reads the text of a plain value.
func (d *interval) UnmarshalYAML(ctx context.Context, n ast.Node) error {
	return unmarshalDuration(ctx, n, d, schedule.ParseEvery)
}

func unmarshalDuration[D ~int64](ctx context.Context, n ast.Node, d *D, parse func(string) (time.Duration, error)) error {
	return unmarshalText(ctx, n, func(text string) error {
		v, err := parse(text)
		*d = D(v)
		return err
	})
}

// unmarshalText reads the text of a plain value.
func unmarshalText(ctx context.Context, n ast.Node, read func(string) error) error {
	text, _, err := scalar(ctx, n)
	if err != nil {
		return err
	}
	if e := field.Of(read(text)); e != nil {
		return &nodeError{n, e.Value, e.Reason, e.Hint}
	}
	return nil
}

// moment is a time in RFC 3339; "" is none.
type moment time.Time

// UnmarshalYAML reads the text of a plain value.
func (m *moment) UnmarshalYAML(ctx context.Context, n ast.Node) error {
	return unmarshalText(ctx, n, func(text string) error {
		if text == "" {
			return nil
		}
		t, err := task.ParseTime("", text)
		*m = moment(t)
		return err
	})
}

// priority is the name of one.
type priority task.Priority

// UnmarshalYAML reads the text of a plain value.
func (p *priority) UnmarshalYAML(ctx context.Context, n ast.Node) error {
	return unmarshalText(ctx, n, func(text string) error {
		v, err := task.ParsePriority(text)
		*p = priority(v)
		return err
	})
}

// attempts is how many attempts a slot gets.
type attempts int

// UnmarshalYAML reads a number.
func (a *attempts) UnmarshalYAML(ctx context.Context, n ast.Node) error {
	if err := (*integer)(a).UnmarshalYAML(ctx, n); err != nil {
		return err
	}
	if e := field.Of(task.CheckAttempts(int(*a))); e != nil {
		return &nodeError{n, e.Value, e.Reason, e.Hint}
	}
	return nil
}

// count is a whole number that a schedule keeps as an int64.
type count int64

// UnmarshalYAML reads a number.
func (c *count) UnmarshalYAML(ctx context.Context, n ast.Node) error {
	var i integer
	err := i.UnmarshalYAML(ctx, n)
	*c = count(i)
	return err
}

// period is a duration for which zero would be taken for the default: so zero is refused.
type period time.Duration

// UnmarshalYAML reads the text of a plain value.
func (p *period) UnmarshalYAML(ctx context.Context, n ast.Node) error {
	if err := unmarshalDuration(ctx, n, p, schedule.ParseDuration); err != nil || *p != 0 {
		return err
	}
	return refuseZero(ctx, n)
}

// nonzero is a number for which zero would be taken for the default: so zero is refused.
type nonzero integer

// UnmarshalYAML reads a number.
func (i *nonzero) UnmarshalYAML(ctx context.Context, n ast.Node) error {
	if err := (*integer)(i).UnmarshalYAML(ctx, n); err != nil || *i != 0 {
		return err
	}
	return refuseZero(ctx, n)
}

func refuseZero(ctx context.Context, n ast.Node) error {
	text, _, _ := scalar(ctx, n)
	return &nodeError{n, text, "zero", "leave it out for the default"}
}

// integer is a whole number: 1.5 and "5" are not.
type integer int

// UnmarshalYAML reads a number.
func (i *integer) UnmarshalYAML(ctx context.Context, n ast.Node) error {
	text, plain, err := scalar(ctx, n)
	if err != nil {
		return err
	}
	if plain.Type() == ast.NullType {
		return nil
	}
	v, err := strconv.ParseInt(text, 0, 64)
	switch {
	case plain.Type() != ast.IntegerType, errors.Is(err, strconv.ErrSyntax):
		return &nodeError{n, text, "not a whole number", ""}
	case err != nil:
		return &nodeError{n, text, "out of range", ""}
	}
	*i = integer(v)
	return nil
}

// text is a plain value as it is written: 1.10 is not 1.1.
type text string

// UnmarshalYAML reads the text of a plain value.
func (t *text) UnmarshalYAML(ctx context.Context, n ast.Node) error {
	s, _, err := scalar(ctx, n)
	*t = text(s)
	return err
}
