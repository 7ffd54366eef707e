package split

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Place is the ID of an event: its milliseconds, its number among those of the same, and its partition; 0: the namespace is not split.
type Place struct {
	MS, N     uint64
	Partition int
}

var errPlace = errors.New("not the ID of an event")

// ParsePlace reads an ID: "<ms>-<n>", in a namespace that is split "<ms>-<n>@<partition>". The number may be left out: 0.
func ParsePlace(id string) (p Place, err error) {
	text, partition, split := strings.Cut(id, "@")
	ms, n, both := strings.Cut(text, "-")
	var errN, errPart error
	p.MS, err = wholeNumber(ms)
	if both {
		p.N, errN = wholeNumber(n)
	}
	if split {
		var number uint64
		number, errPart = wholeNumber(partition)
		p.Partition = int(min(number, Most+1)) //nolint:gosec // at most 257
		if p.Partition < 1 || p.Partition > Most {
			errPart = errPlace
		}
	}
	if err != nil || errN != nil || errPart != nil || p.MS == math.MaxUint64 && p.N == math.MaxUint64 { // nothing can come after that
		return Place{}, errPlace
	}
	return p, nil
}

// PlaceOf is ParsePlace for the ID of an event that onbeat has made.
func PlaceOf(id string) Place {
	p, _ := ParsePlace(id)
	return p
}

func wholeNumber(s string) (uint64, error) {
	if strings.HasPrefix(s, "+") {
		return 0, errPlace
	}
	return strconv.ParseUint(s, 10, 64)
}

// ID is the place as Redis writes it, without the partition.
func (p Place) ID() string { return fmt.Sprintf("%d-%d", p.MS, p.N) }

func (p Place) String() string {
	if p.Partition == 0 {
		return p.ID()
	}
	return p.ID() + "@" + strconv.Itoa(p.Partition)
}

// Compare is the order of a merged list: by the clock, then by partition.
func (p Place) Compare(o Place) int {
	return cmp.Or(cmp.Compare(p.MS, o.MS), cmp.Compare(p.N, o.N), cmp.Compare(p.Partition, o.Partition))
}

// Cursor is how far the events of a namespace were read. Partitions do not share a clock, and one may hang while others go on, so it has a
// place for each partition of which an event was read, and one for all others: the events up to it in a merged list were read. The zero
// value is before all events. A cursor does not change: Past returns another.
type Cursor struct {
	others Place
	of     []Place // sorted by partition; none while the namespace is not split
}

// ParseCursor reads what String has written, or the ID of an event. "" is before all events.
func ParseCursor(text string) (c Cursor, err error) {
	if text == "" {
		return c, nil
	}
	first, rest, more := strings.Cut(text, ",")
	if c.others, err = ParsePlace(first); err != nil {
		return Cursor{}, err
	}
	for more {
		first, rest, more = strings.Cut(rest, ",")
		p, err := ParsePlace(first)
		if err != nil || p.Partition == 0 {
			return Cursor{}, errPlace
		}
		c = c.Past(p)
	}
	return c, nil
}

// String is the place of the others, and behind commas those of single partitions.
func (c Cursor) String() string {
	text := c.others.String()
	for _, p := range c.of {
		text += "," + p.String()
	}
	return text
}

// Most is the largest partition that is named, 0 if none is.
func (c Cursor) Most() int {
	most := c.others.Partition
	for _, p := range c.of {
		most = max(most, p.Partition)
	}
	return most
}

// In is the last place of a partition that was read.
func (c Cursor) In(partition int) Place {
	if i, ok := c.find(partition); ok {
		return c.of[i]
	}
	p := c.others
	behind := p.Partition != 0 && partition > p.Partition // an event with this ID comes after the place
	p.Partition = partition
	switch {
	case !behind:
	case p.N > 0:
		p.N--
	case p.MS > 0:
		p.MS, p.N = p.MS-1, math.MaxUint64
	}
	return p
}

// Has reports whether an event was read.
func (c Cursor) Has(p Place) bool { return p.Compare(c.In(p.Partition)) <= 0 }

// Past is the cursor when the events of a partition up to p were read too.
func (c Cursor) Past(p Place) Cursor {
	if p.Partition == 0 {
		return Cursor{others: p}
	}
	of := slices.Clone(c.of)
	i, ok := c.find(p.Partition)
	if ok {
		of[i] = p
	} else {
		of = slices.Insert(of, i, p)
	}
	return Cursor{others: c.others, of: of}
}

func (c Cursor) find(partition int) (int, bool) {
	return slices.BinarySearchFunc(c.of, partition, func(p Place, n int) int { return p.Partition - n })
}
