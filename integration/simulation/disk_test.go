package simulation

import (
	"time"

	"github.com/alicebob/miniredis/v2"
)

// disk is everything that the Redis held at a moment.
type disk struct {
	strings map[string]string
	ttls    map[string]time.Duration
	hashes  map[string][]string
	zsets   map[string]map[string]float64
	streams map[string][]miniredis.StreamEntry
}

// snapshot reads everything that Redis holds.
func (r *virtualRedis) snapshot() *disk {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := &disk{
		strings: map[string]string{}, ttls: map[string]time.Duration{}, hashes: map[string][]string{},
		zsets: map[string]map[string]float64{}, streams: map[string][]miniredis.StreamEntry{},
	}
	m := r.mini
	for _, key := range m.Keys() {
		switch m.Type(key) {
		case "string":
			d.strings[key], _ = m.Get(key)
		case "hash":
			names, _ := m.HKeys(key)
			for _, name := range names {
				d.hashes[key] = append(d.hashes[key], name, m.HGet(key, name))
			}
		case "zset":
			scores, _ := m.SortedSet(key)
			d.zsets[key] = map[string]float64{}
			for name, score := range scores {
				d.zsets[key][name] = score
			}
		case "stream":
			entries, _ := m.Stream(key)
			d.streams[key] = append([]miniredis.StreamEntry(nil), entries...)
		}
		if ttl := m.TTL(key); ttl > 0 {
			d.ttls[key] = ttl
		}
	}
	return d
}

// restore makes Redis hold exactly d, or nothing if d is nil.
func (r *virtualRedis) restore(d *disk) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.mini
	m.FlushAll()
	if d == nil {
		return
	}
	for key, text := range d.strings {
		_ = m.Set(key, text)
	}
	for key, pairs := range d.hashes {
		m.HSet(key, pairs...)
	}
	for key, scores := range d.zsets {
		for name, score := range scores {
			_, _ = m.ZAdd(key, score, name)
		}
	}
	for key, entries := range d.streams {
		for _, e := range entries {
			_, _ = m.XAdd(key, e.ID, e.Values)
		}
	}
	for key, ttl := range d.ttls {
		m.SetTTL(key, ttl)
	}
}
