package simulation

import (
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/onbeat/onbeat/internal/testredis"
)

// virtualRedis is the in-process Redis with additions for the simulation: a clock that can be set, a limit of its memory,
// messages that can be lost, and writes that can be taken back. A command runs at one moment of virtual time.
type virtualRedis struct {
	mini *testredis.Miniredis

	mu      sync.Mutex
	offset  time.Duration // of its clock from the bubble's
	away    bool
	left    bool // it was away once: idle connections may be broken, for which a client checks a real connection
	full    bool
	hangs   bool
	waiting []func() // commands that were sent while it hangs
	dirty   bool     // the script under way has written
	refused bool     // a write of that script was refused
	conns   map[*conn]struct{}
	byPeer  map[*server.Peer]*conn
	channel map[string]map[*conn]struct{}
	lies    map[*link]string // the error that the next step of a leader gets, in place of being done
}

func newVirtualRedis(t testing.TB) *virtualRedis {
	t.Helper()
	r := &virtualRedis{
		mini: testredis.Mini(t), conns: map[*conn]struct{}{}, byPeer: map[*server.Peer]*conn{}, channel: map[string]map[*conn]struct{}{},
	}
	if err := r.mini.Client.Ping(t.Context()).Err(); err != nil { // the server starts with the first connection
		t.Fatal(err)
	}
	r.mini.Server().SetPreHook(r.before)
	return r
}

// now returns the time by the clock of Redis.
func (r *virtualRedis) now() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Now().Add(r.offset)
}

// run executes commands that arrived together.
func (r *virtualRedis) run(c *conn, commands [][]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.hangs {
		r.waiting = append(r.waiting, func() { r.execute(c, commands) })
		return
	}
	r.execute(c, commands)
}

func (r *virtualRedis) execute(c *conn, commands [][]string) {
	if r.away {
		return
	}
	if _, open := r.conns[c]; !open { // commands on a closed connection are not done
		return
	}
	r.mini.SetTime(time.Now().Add(r.offset))
	for _, args := range commands {
		r.dirty = false
		before := len(c.out)
		if lie := r.lies[c.link]; lie != "" && isAdvance(args) {
			delete(r.lies, c.link)
			c.peer.WriteError(lie)
			c.peer.Flush()
			continue
		}
		r.mini.Server().Dispatch(c.peer, args)
		c.peer.Flush()
		if r.refused { // the in-process server hides the error of a script's command behind one of its own
			c.out, r.refused = c.out[:before], false
			c.peer.WriteError(full)
			c.peer.Flush()
		}
	}
	c.deliver(c.out, false)
	c.out = nil
}

const full = "OOM command not allowed when used memory > 'maxmemory'."

// isAdvance reports whether a command is a leader's step (advance.lua), by its third and fourth keys.
func isAdvance(args []string) bool {
	return len(args) > 6 && strings.HasSuffix(args[5], ":leader") && strings.HasSuffix(args[6], ":last")
}

// lie makes Redis answer the leader's next step with an error, as a primary that has been replaced does.
func (r *virtualRedis) lie(l *link, text string) {
	r.with(func() {
		if r.lies == nil {
			r.lies = map[*link]string{}
		}
		r.lies[l] = text
	})
}

// before is called for each command, also for those of scripts. It returns true if it has answered the command itself.
func (r *virtualRedis) before(p *server.Peer, name string, args ...string) bool {
	switch name {
	case "PUBLISH":
		n := 0
		for c := range r.channel[args[0]] {
			c.push(args[0], args[1])
			n++
		}
		p.WriteInt(n)
		return true
	case "PUBSUB":
		p.WriteLen(2 * len(args[1:])) // NUMSUB, the only one that onbeat asks
		for _, channel := range args[1:] {
			p.WriteBulk(channel)
			p.WriteInt(len(r.channel[channel]))
		}
		return true
	case "SUBSCRIBE":
		c := r.byPeer[p]
		if c.link.isUnheard() {
			r.forget(c)
			c.reset()
			return true
		}
		for _, channel := range args {
			if r.channel[channel] == nil {
				r.channel[channel] = map[*conn]struct{}{}
			}
			r.channel[channel][c] = struct{}{}
			c.subscribed++
			p.WritePushLen(3)
			p.WriteBulk("subscribe")
			p.WriteBulk(channel)
			p.WriteInt(c.subscribed)
		}
		return true
	case "UNSUBSCRIBE", "PING", "EVAL", "EVALSHA", "SCRIPT":
		return false
	}
	if !writes[name] {
		return false
	}
	if r.full && !r.dirty && !frees[name] {
		r.refused = true
		p.WriteError(full)
		return true
	}
	r.dirty = true
	return false
}

// writes are the commands with which onbeat's scripts write; frees are the ones that Redis lets pass at maxmemory.
var (
	writes = set("HSET", "HDEL", "HINCRBY", "ZADD", "ZREM", "ZREMRANGEBYRANK", "SET", "DEL", "XADD", "XTRIM", "PEXPIRE", "EXPIRE")
	frees  = set("HDEL", "ZREM", "ZREMRANGEBYRANK", "DEL", "XTRIM", "PEXPIRE", "EXPIRE")
)

func set(names ...string) map[string]bool {
	s := map[string]bool{}
	for _, n := range names {
		s[n] = true
	}
	return s
}

// open accepts a connection. It returns false while Redis is away.
func (r *virtualRedis) open(c *conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.away || r.hangs {
		return false
	}
	r.conns[c] = struct{}{}
	r.byPeer[c.peer] = c
	return true
}

// shut forgets a connection, as a server does when the kernel reports that the client's process ended.
func (r *virtualRedis) shut(c *conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget(c)
}

func (r *virtualRedis) forget(c *conn) {
	delete(r.conns, c)
	delete(r.byPeer, c.peer)
	for _, subscribers := range r.channel {
		delete(subscribers, c)
	}
}

// leave ends every connection and accepts no new ones until comeBack is called.
func (r *virtualRedis) leave() {
	r.mu.Lock()
	r.away, r.left, r.waiting, r.hangs = true, true, nil, false
	open := r.forgetAll(func(*conn) bool { return true })
	r.mini.Server().Dispatch(server.NewPeer(nowhere()), []string{"SCRIPT", "FLUSH"}) // a new process knows no scripts
	r.mu.Unlock()
	for _, c := range open {
		c.reset()
	}
}

// drop ends the connections that are chosen, as CLIENT KILL does. New ones are accepted.
func (r *virtualRedis) drop(which func(*conn) bool) {
	r.mu.Lock()
	r.left = true
	open := r.forgetAll(which)
	r.mu.Unlock()
	for _, c := range open {
		c.reset()
	}
}

func (r *virtualRedis) forgetAll(which func(*conn) bool) (forgotten []*conn) {
	for c := range r.conns {
		if which(c) {
			forgotten = append(forgotten, c)
			r.forget(c)
		}
	}
	return forgotten
}

func (r *virtualRedis) comeBack() { r.with(func() { r.away = false }) }

func (r *virtualRedis) with(fn func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fn()
}

// hang stops all replies without breaking a connection, until it is called with false.
func (r *virtualRedis) hang(hangs bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hangs = hangs
	if hangs {
		return
	}
	held := r.waiting
	r.waiting = nil
	for _, fn := range held {
		fn()
	}
}

func (r *virtualRedis) flushScripts() {
	r.with(func() { r.mini.Server().Dispatch(server.NewPeer(nowhere()), []string{"SCRIPT", "FLUSH"}) })
}

// commandsOf takes the complete commands off the data that a client wrote.
func commandsOf(b []byte) (commands [][]string, rest []byte) {
	for {
		args, n := command(b)
		if n == 0 {
			return commands, b
		}
		commands = append(commands, args)
		b = b[n:]
	}
}

// command reads the first command, and returns its length, or 0 if it is not complete.
func command(b []byte) (args []string, length int) {
	s := string(b)
	total := len(s)
	number := func(mark byte) (int, bool) {
		end := strings.Index(s, "\r\n")
		if end < 1 || s[0] != mark {
			return 0, false
		}
		n := 0
		for _, digit := range s[1:end] {
			n = 10*n + int(digit-'0')
		}
		s = s[end+2:]
		return n, true
	}
	n, ok := number('*')
	if !ok {
		return nil, 0
	}
	for range n {
		size, ok := number('$')
		if !ok || len(s) < size+2 {
			return nil, 0
		}
		args = append(args, s[:size])
		s = s[size+2:]
	}
	return args, total - len(s)
}

// brokeIdle reports whether an error comes from an idle connection that Redis closed when it went away.
func (r *virtualRedis) brokeIdle(err error) (broke bool) {
	r.with(func() { broke = r.left && errors.Is(err, io.EOF) })
	return broke
}
