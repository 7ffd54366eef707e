package store

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"
	"golang.org/x/sync/singleflight"
)

const (
	patience   = 200 * time.Millisecond // for the other sentinels, once one has answered
	goodFor    = 500 * time.Millisecond // so that a pool that fills asks once
	checkTime  = time.Second            // for one address, while there are others to try
	justFollow = "follow"               // a name of a network in which nothing is dialled
)

var errFollowed = errors.New("nothing to dial")

// sentinels finds the primary that the sentinels of a URL name. It is a hook around the dialer of go-redis. That dialer
// believes the first sentinel that answers, as long as this sentinel lives. If the sentinel is behind, the dialer would leave
// the process with a replica, or without any server. The hook still calls it, because it hears of failovers and then closes
// the connections to the old primary.
type sentinels struct {
	name    string
	addrs   []string
	timeout time.Duration
	asker   func(addr string) *redis.Options // to ask a sentinel
	checker func(addr string) *redis.Options // to ask a server for its role
	dial    redis.DialHook
	log     zerolog.Logger

	ready     atomic.Bool // the client has the hook
	following atomic.Bool
	flight    singleflight.Group

	noted map[string]string // sentinel -> what it last named in place of the primary; only the flight uses it

	mu    sync.Mutex
	conns map[*led]struct{}
	timer *time.Timer // to look again
	leads int64       // connections made so far
	addr  string      // of the primary, as found last
	epoch int64       // of the configuration that named it, or -1
	until time.Time
}

func newSentinels(o *redis.FailoverOptions, log zerolog.Logger) *sentinels {
	dial := redis.NewDialer(&redis.Options{DialTimeout: o.DialTimeout, TLSConfig: o.TLSConfig})
	once := func(addr, user, password string) *redis.Options {
		return &redis.Options{
			Addr: addr, Username: user, Password: password, Dialer: dial, ClientName: o.ClientName, Protocol: o.Protocol,
			DialTimeout: o.DialTimeout, ReadTimeout: o.ReadTimeout, WriteTimeout: o.WriteTimeout, ContextTimeoutEnabled: true,
			PoolSize:         2, // after as many failed dials go-redis probes once a second, even when the client is closed
			PipelinePoolSize: -1, MaxRetries: -1, DialerRetries: dialTries, DisableIdentity: true,
			MaintNotificationsConfig: noMaintenance,
		}
	}
	return &sentinels{
		name: o.MasterName, addrs: o.SentinelAddrs, timeout: o.DialTimeout, dial: dial, log: log, noted: map[string]string{}, conns: map[*led]struct{}{},
		asker:   func(addr string) *redis.Options { return once(addr, o.SentinelUsername, o.SentinelPassword) },
		checker: func(addr string) *redis.Options { return once(addr, o.Username, o.Password) },
	}
}

// dialPlain is the dialer that go-redis calls with the address that it found. Before the client has the hook, dialPlain dials
// nothing, because no check has shown that the address is that of the primary.
func (s *sentinels) dialPlain(ctx context.Context, network, addr string) (net.Conn, error) {
	if network == justFollow || !s.ready.Load() {
		return nil, errFollowed
	}
	return s.dial(ctx, network, addr)
}

// DialHook dials the primary in place of the address that one sentinel named.
func (s *sentinels) DialHook(follow redis.DialHook) redis.DialHook {
	return dialAlways(func(ctx context.Context, network, _ string) (net.Conn, error) {
		addr, err := s.primary(ctx, follow)
		if err != nil {
			return nil, err
		}
		conn, err := s.dial(ctx, network, addr)
		if err != nil {
			s.forget(addr)
			return nil, err
		}
		if conn, ok := s.lead(conn, addr); ok {
			return conn, nil
		}
		_ = conn.Close()
		return nil, &net.OpError{Op: "dial", Net: network, Err: errors.New(addr + " is no longer the primary")}
	})
}

func (s *sentinels) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (s *sentinels) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// primary returns the address of the primary. Callers that ask at the same time share one search. If one of them gives up,
// the search goes on for the others.
func (s *sentinels) primary(ctx context.Context, follow redis.DialHook) (string, error) {
	if addr := s.known(); addr != "" {
		return addr, nil
	}
	answer := s.flight.DoChan("", func() (any, error) {
		if addr := s.known(); addr != "" {
			return addr, nil
		}
		ctx, done := context.WithTimeout(context.WithoutCancel(ctx), s.timeout)
		defer done()
		followed := s.follow(ctx, follow)
		addr, err := s.find(ctx)
		select { // following may close connections to other servers, so it should be over before ours is made
		case <-followed:
		case <-time.After(patience):
		}
		return addr, err
	})
	select {
	case a := <-answer:
		if a.Err != nil {
			return "", a.Err
		}
		addr, _ := a.Val.(string)
		return addr, nil
	case <-ctx.Done():
		return "", &net.OpError{Op: "dial", Net: "tcp", Err: ctx.Err()}
	}
}

func (s *sentinels) known() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Now().Before(s.until) {
		return s.addr
	}
	return ""
}

func (s *sentinels) forget(addr string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.addr == addr {
		s.until = time.Time{}
	}
}

// follow makes go-redis subscribe to a sentinel. The channel is closed when that is done, or at once if an earlier follow is
// still under way.
func (s *sentinels) follow(ctx context.Context, dial redis.DialHook) <-chan struct{} {
	done := make(chan struct{})
	if !s.following.CompareAndSwap(false, true) {
		close(done)
		return done
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.timeout)
	go func() {
		defer close(done)
		defer s.following.Store(false)
		defer cancel()
		if conn, err := dial(ctx, justFollow, ""); err == nil {
			_ = conn.Close()
		}
	}()
	return done
}

// check returns why the server at an address is not a primary. A server that answers but refuses to tell its role counts as
// a primary: the caller that uses the connection gets the reason.
func (s *sentinels) check(ctx context.Context, addr string, others bool) error {
	if others {
		var done context.CancelFunc
		ctx, done = context.WithTimeout(ctx, checkTime)
		defer done()
	}
	c := redis.NewClient(s.checker(addr))
	defer func() { _ = c.Close() }()
	reply, err := c.Do(ctx, "role").Slice()
	var refused redis.Error
	switch {
	case errors.As(err, &refused):
		return nil
	case err != nil:
		return err
	case len(reply) > 0 && reply[0] == "master":
		return nil
	}
	return errReplica
}

var errReplica = errors.New("a replica")

// found keeps the primary for a moment, and logs which sentinels name another, once for each change.
func (s *sentinels) found(ctx context.Context, primary named, heard []named, wrong map[string]error) {
	for _, w := range heard {
		what := w.names + " " + primary.names
		switch {
		case w.err != nil || w.names == primary.names:
			delete(s.noted, w.by)
			continue
		case s.noted[w.by] == what:
			continue
		}
		s.noted[w.by] = what
		if wrong[w.names] == nil && w.epoch == primary.epoch && s.check(ctx, w.names, true) == nil {
			continue // it may be another name of the same server
		}
		s.log.Warn().Str("sentinel", w.by).Str("names", w.names).Str("primary", primary.names).
			Msg("a sentinel names an address that is not the primary: following the other sentinels")
	}
	s.mu.Lock()
	s.addr, s.epoch, s.until = primary.names, primary.epoch, time.Now().Add(goodFor)
	old := s.elsewhere(primary.names)
	s.mu.Unlock()
	for _, conn := range old {
		_ = conn.Close()
	}
}

// noPrimary is the error if no sentinel led to a primary. It has several causes, because go-redis would put a single cause in
// place of the error itself.
type noPrimary struct {
	text   string
	causes []error
}

func (e *noPrimary) Error() string   { return e.text }
func (e *noPrimary) Unwrap() []error { return e.causes }

// nobody returns the error if no sentinel leads to a primary. It is a dial error, because nothing was sent, and a retry may
// succeed. The refusal of a sentinel is among its causes only if no sentinel named an address.
func (s *sentinels) nobody(heard []named, wrong map[string]error) error {
	e := &noPrimary{}
	var parts []string
	for _, w := range heard {
		if err := w.err; err != nil {
			parts = append(parts, "sentinel "+w.by+": "+reason(err))
			if len(wrong) == 0 && !errors.Is(err, redis.Nil) {
				e.causes = append(e.causes, err)
			}
			continue
		}
		parts = append(parts, "sentinel "+w.by+" names "+w.names+" ("+reason(wrong[w.names])+")")
	}
	for _, err := range wrong {
		e.causes = append(e.causes, err)
	}
	slices.Sort(parts)
	e.text = fmt.Sprintf("no primary found for %q: %s", s.name, strings.Join(parts, "; "))
	if len(wrong) > 0 {
		e.text += "; run SENTINEL MASTERS on each"
	}
	e.causes = append(e.causes, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New(e.text)})
	return e
}

// reason returns an error in short: without the address, and without arguments of AUTH that a server quotes.
func reason(err error) string {
	var op *net.OpError
	var reply redis.Error
	switch {
	case errors.Is(err, redis.Nil):
		return "does not know that name"
	case errors.As(err, &reply):
		return Classify(err).Error()
	case errors.As(err, &op) && op.Err != nil:
		return op.Err.Error()
	}
	return err.Error()
}
