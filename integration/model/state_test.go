package model

import (
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"

	"github.com/onbeat/onbeat/internal/queue"
)

// The clock of the model, in ms: it begins at a round moment, and slots lie on whole intervals.
const (
	begin    = int64(1_700_000_000_000)
	lease    = int64(1000)
	interval = int64(1000)
	horizon  = int64(1000)
)

// partition is the one partition of the model. Each server has it to itself.
var (
	partition = queue.Partition{Namespace: "m"}
	keys      = partition.Keys()
)

// state is one moment: everything in Redis, the knowledge of each instance and of the client, and the book.
type state struct {
	now    int64
	disk   disk
	procs  []proc
	client client
	book   book

	watched, looks bool // see room
}

func (s *state) clone() *state {
	c := *s
	c.procs = slices.Clone(s.procs)
	for i := range c.procs {
		c.procs[i] = s.procs[i].clone()
	}
	c.book = s.book.clone()
	return &c
}

var seed = maphash.MakeSeed()

// mark is the same for states that no call can tell apart. Fences and epochs are only compared, and a new one is larger than
// all before, so their order is all that matters. Of a sequence number only the distance to the last one in Redis matters.
// Values by which no script decides are left out: counters, the version of the lanes, since when an instance leads, and
// mostly the watchers.
func (s *state) mark() uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	ranks := s.ranks()
	fmt.Fprintf(&h, "%d\n", s.now)
	for _, key := range slices.Sorted(maps.Keys(s.disk)) {
		s.markKey(&h, key, ranks)
	}
	for i := range s.procs {
		s.procs[i].mark(&h, s, ranks)
	}
	fmt.Fprintf(&h, "%+v\n", s.client)
	s.book.mark(&h, ranks)
	return h.Sum64()
}

func (s *state) markKey(h *maphash.Hash, key string, ranks func(int64) int) {
	if key == keys.Watch && !s.watched || key == keys.Details {
		return
	}
	if key == keys.Suspects && !s.looks {
		return
	}
	v := s.disk[key]
	fmt.Fprintf(h, "%s %s %d\n", key, v.text, v.ttl)
	for _, f := range v.fields {
		text := f.text
		switch {
		case key == keys.Meta && (f.name == "done" || f.name == "retried" || f.name == "died" || f.name == "lanes"),
			key == keys.Leader && (f.name == "since" || !s.looks && (f.name == "monitor" || f.name == "sign")):
			continue
		case key == keys.Meta && (f.name == "fence" || f.name == "epoch"), key == keys.Leader && f.name == "epoch":
			text = fmt.Sprint(ranks(number(text)))
		case strings.HasPrefix(key, keys.Running(0)[:len(keys.Running(0))-1]) && f.name == "":
			continue
		case strings.HasPrefix(key, keys.Running(0)[:len(keys.Running(0))-1]), key == keys.Cancel:
			fence, rest, _ := strings.Cut(text, " ")
			text = fmt.Sprint(ranks(number(fence)), rest)
		}
		fmt.Fprintf(h, "%s=%s %v\n", f.name, text, f.score)
	}
}

// ranks numbers, in order, the fences and epochs that Redis, an instance or the client still knows.
func (s *state) ranks() func(int64) int {
	var all []int64
	all = append(all, number(s.disk.get(keys.Meta, "fence")), number(s.disk.get(keys.Meta, "epoch")))
	for i := range s.procs {
		p := &s.procs[i]
		all = append(all, p.epoch)
		for _, c := range slices.Concat(p.claims, p.tried) {
			all = append(all, c.fence)
		}
		if p.flight != nil {
			all = append(all, p.flight.epoch)
			for _, c := range p.flight.settle {
				all = append(all, c.fence)
			}
		}
	}
	for _, e := range s.book.tasks {
		all = append(all, e.fence)
	}
	for _, f := range s.disk[keys.Cancel].fields {
		fence, _, _ := strings.Cut(f.text, " ")
		all = append(all, number(fence))
	}
	slices.Sort(all)
	all = slices.Compact(all)
	return func(n int64) int { i, _ := slices.BinarySearch(all, n); return i }
}
