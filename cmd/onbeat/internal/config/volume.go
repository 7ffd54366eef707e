package config

import (
	"context"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// volume is a number of bytes: 1024, or with a unit, 64KiB, 512MiB, 2GiB. Zero would be taken for the default: so it is refused.
type volume int64

// units are those of a volume. Each is a power of two: MB may be one or be a million, so it is none.
var units = []struct {
	name  string
	bytes int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}}

// UnmarshalYAML reads the text of a plain value.
func (v *volume) UnmarshalYAML(ctx context.Context, n ast.Node) error {
	text, plain, err := scalar(ctx, n)
	if err != nil {
		return err
	}
	if plain.Type() == ast.NullType {
		return nil
	}
	number, unit := text, int64(1)
	for _, u := range units {
		if head, ok := strings.CutSuffix(text, u.name); ok {
			number, unit = strings.TrimRight(head, " "), u.bytes
		}
	}
	bytes, err := strconv.ParseInt(number, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrSyntax):
		return &nodeError{n, text, "not a size", "a whole number of bytes, KiB, MiB, GiB or TiB, such as 512MiB"}
	case err != nil, bytes > math.MaxInt64/unit:
		return &nodeError{n, text, "out of range", ""}
	case bytes < 0:
		return &nodeError{n, text, "negative", "write it without a minus sign"}
	case bytes == 0:
		return refuseZero(ctx, n)
	}
	*v = volume(bytes * unit)
	return nil
}
