package model

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// disk is everything that a Redis holds. It never changes after it was read, so states share it.
type disk map[string]value

// value is what lies at a key: a string, or the fields of a hash, or the members of a zset with their scores.
type value struct {
	kind   string
	text   string
	fields []field // by name
	ttl    time.Duration
}

type field struct {
	name, text string
	score      float64
}

// read reads everything that a server holds except its streams. Streams only grow: read returns their new entries apart. It
// leaves out the revisions of schedules: no script decides by them, and each change would make another state.
func read(m *miniredis.Miniredis) (disk, map[string][]miniredis.StreamEntry) {
	d, streams := disk{}, map[string][]miniredis.StreamEntry{}
	for _, key := range m.Keys() {
		if key == keys.Revisions {
			continue
		}
		v := value{kind: m.Type(key), ttl: m.TTL(key)}
		switch v.kind {
		case "string":
			v.text, _ = m.Get(key)
		case "hash":
			names, _ := m.HKeys(key)
			slices.Sort(names)
			for _, name := range names {
				v.fields = append(v.fields, field{name: name, text: m.HGet(key, name)})
			}
		case "zset":
			scores, _ := m.SortedSet(key)
			for _, name := range slices.Sorted(maps.Keys(scores)) {
				v.fields = append(v.fields, field{name: name, score: scores[name]})
			}
		case "stream":
			streams[key], _ = m.Stream(key)
			continue
		default:
			panic("a key of type " + v.kind)
		}
		d[key] = v
	}
	return d, streams
}

// write makes a server hold exactly d.
func (d disk) write(m *miniredis.Miniredis) {
	m.FlushAll()
	for key, v := range d {
		switch v.kind {
		case "string":
			_ = m.Set(key, v.text)
		case "hash":
			pairs := make([]string, 0, 2*len(v.fields))
			for _, f := range v.fields {
				pairs = append(pairs, f.name, f.text)
			}
			m.HSet(key, pairs...)
		case "zset":
			for _, f := range v.fields {
				_, _ = m.ZAdd(key, f.score, f.name)
			}
		}
		if v.ttl > 0 {
			m.SetTTL(key, v.ttl)
		}
	}
}

// equal compares two disks, without the keys for which skip returns true.
func (d disk) equal(other disk, skip func(key string) bool) bool {
	count := 0
	for key, v := range d {
		if skip(key) {
			continue
		}
		count++
		o, ok := other[key]
		if !ok || v.kind != o.kind || v.text != o.text || v.ttl != o.ttl || !slices.Equal(v.fields, o.fields) {
			return false
		}
	}
	for key := range other {
		if !skip(key) {
			count--
		}
	}
	return count == 0
}

// get returns one field of a hash, or "".
func (d disk) get(key, name string) string {
	f, _ := d.find(key, name)
	return f.text
}

// find returns one field of a hash or zset.
func (d disk) find(key, name string) (field, bool) {
	fields := d[key].fields
	i, ok := slices.BinarySearchFunc(fields, name, func(f field, name string) int {
		switch {
		case f.name < name:
			return -1
		case f.name > name:
			return 1
		}
		return 0
	})
	if !ok {
		return field{}, false
	}
	return fields[i], true
}

func number(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}
