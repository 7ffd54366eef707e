package store

import (
	"cmp"
	"context"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// named is the answer of one sentinel.
type named struct {
	by, names string
	epoch     int64 // of its configuration, or -1
	err       error
}

// find asks all sentinels, and checks the addresses that they name until one is a primary.
func (s *sentinels) find(ctx context.Context) (string, error) {
	ctx, done := context.WithCancel(ctx) // ends the calls to sentinels that have not answered by then
	defer done()
	words := make(chan named, len(s.addrs))
	for _, by := range s.addrs {
		go func() { words <- s.ask(ctx, by) }()
	}
	var heard []named
	wrong := map[string]error{}
	for len(heard) < len(s.addrs) {
		heard = listen(words, heard, len(s.addrs))
		last := s.last()
		best := ranked(heard, last.names)
		if len(best) > 0 && best[0].epoch < last.epoch && len(heard) < len(s.addrs) && s.check(ctx, last.names, true) == nil {
			s.found(ctx, last, heard, wrong) // a sentinel that is behind was faster than the others
			return last.names, nil
		}
		for _, c := range best {
			if wrong[c.names] != nil || c.epoch < best[0].epoch { // an older primary may still believe that it is one
				continue
			}
			if err := s.check(ctx, c.names, len(s.addrs) > 1); err != nil {
				wrong[c.names] = err
				continue
			}
			s.found(ctx, c, heard, wrong)
			return c.names, nil
		}
	}
	return "", s.nobody(heard, wrong)
}

// last returns the primary that was found last. It names "" if there was none.
func (s *sentinels) last() named {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.addr == "" {
		return named{epoch: -1}
	}
	return named{names: s.addr, epoch: s.epoch}
}

// listen waits until one more sentinel has named an address, and then a little for the others.
func listen(words <-chan named, heard []named, all int) []named {
	var late <-chan time.Time
	for len(heard) < all {
		select {
		case w := <-words:
			heard = append(heard, w)
			if w.err == nil && late == nil {
				late = time.After(patience)
			}
		case <-late:
			return heard
		}
	}
	return heard
}

// ask asks one sentinel. While a sentinel promotes a replica, SENTINEL MASTER still has the old address beside the new epoch.
// So ask reads the address in a call of its own, and after the epoch: then the address is never the older of the two.
func (s *sentinels) ask(ctx context.Context, by string) named {
	w := named{by: by, epoch: -1}
	c := redis.NewSentinelClient(s.asker(by))
	defer func() { _ = c.Close() }()
	if m, err := c.Master(ctx, s.name).Result(); err == nil { // the user may lack the right
		if n, err := strconv.ParseInt(m["config-epoch"], 10, 64); err == nil {
			w.epoch = n
		}
	}
	addr, err := c.GetMasterAddrByName(ctx, s.name).Result()
	switch {
	case err != nil:
		w.err = err
	case len(addr) != 2 || addr[0] == "":
		w.err = redis.Nil
	default:
		w.names = net.JoinHostPort(addr[0], addr[1])
	}
	return w
}

// ranked returns the addresses that were named, each once, the best first. The newest configuration wins, as among sentinels
// themselves (https://redis.io/docs/latest/operate/oss_and_stack/management/sentinel/, "Configuration epochs"). If sentinels do
// not tell their epoch, the address that most of them name wins.
//
// If two addresses have the same epoch, they are names of one server, and the one in use stays.
func ranked(heard []named, used string) []named {
	votes := map[string]int{}
	var best []named
	for _, w := range heard {
		if w.err != nil {
			continue
		}
		votes[w.names]++
		if i := slices.IndexFunc(best, func(b named) bool { return b.names == w.names }); i < 0 {
			best = append(best, w)
		} else if best[i].epoch < w.epoch {
			best[i] = w
		}
	}
	slices.SortStableFunc(best, func(a, b named) int {
		if a.epoch == b.epoch && a.epoch >= 0 && (a.names == used) != (b.names == used) {
			if a.names == used {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(b.epoch, a.epoch), cmp.Compare(votes[b.names], votes[a.names]))
	})
	return best
}
