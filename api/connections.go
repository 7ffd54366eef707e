package api

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"sync"
)

// Connections at once. A connection is a stranger's until a request on it has come from the holder of a token.
const (
	mostStrangers = 256
	mostHeld      = 768
)

// connections are those of a listener. None waits: if strangers have too many, the oldest of the address with the most of them ends.
type connections struct {
	net.Listener

	mu        sync.Mutex
	strangers list.List // of *connection, the oldest first
	from      map[netip.Addr]int
	held      int // connections of holders of tokens
}

// connection is one of them.
type connection struct {
	net.Conn
	all  *connections
	from netip.Addr

	place *list.Element // among the strangers; nil: it is not
	owner *sender       // who holds it; nil: nobody
}

// Accept waits for the next connection.
func (c *connections) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	one := &connection{Conn: conn, all: c, from: networkOf(conn.RemoteAddr())}
	if oldest := c.add(one); oldest != nil {
		_ = oldest.Close()
	}
	return one, nil
}

// networkOf returns whose an address is: in IPv6 a host has as many addresses as it likes, so their network counts.
func networkOf(a net.Addr) netip.Addr {
	at, _ := netip.ParseAddrPort(a.String())
	ip := at.Addr().Unmap()
	if ip.Is6() {
		if network, err := ip.WithZone("").Prefix(64); err == nil {
			return network.Addr()
		}
	}
	return ip
}

// add adds a stranger. It returns the one that has to go, if any.
func (c *connections) add(one *connection) (gone *connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.from == nil {
		c.from = map[netip.Addr]int{}
	}
	one.place = c.strangers.PushBack(one)
	c.from[one.from]++
	most := 0
	for e := c.strangers.Front(); e != nil && c.strangers.Len() > mostStrangers; e = e.Next() {
		if other, _ := e.Value.(*connection); c.from[other.from] > most {
			gone, most = other, c.from[other.from]
		}
	}
	return gone
}

// Close ends a connection.
func (c *connection) Close() error {
	c.all.mu.Lock()
	c.leave()
	c.all.mu.Unlock()
	return c.Conn.Close()
}

// leave takes a connection out of the count.
func (c *connection) leave() {
	switch {
	case c.place != nil:
		c.all.strangers.Remove(c.place)
		c.place = nil
		if c.all.from[c.from]--; c.all.from[c.from] == 0 {
			delete(c.all.from, c.from)
		}
	case c.owner != nil:
		c.all.held--
		c.owner.conns--
		c.owner = nil
	}
}

type connectionKey struct{}

// connected lets the requests of a connection find it.
func connected(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	return context.WithValue(ctx, connectionKey{}, c)
}

// hold makes the connection of a request that of its sender. It reports whether the sender has room for it. Without room, the connection
// keeps its owner, and should end with the answer.
func hold(ctx context.Context, by *sender) bool {
	c, ok := ctx.Value(connectionKey{}).(*connection)
	if !ok {
		return true
	}
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	switch {
	case c.owner == by:
		return true
	case c.place == nil && c.owner == nil: // it has been ended
		return false
	case by.conns+1 > mostHeld-c.all.held-1: // a sender leaves to others as much room as it takes
		return false
	}
	c.leave()
	c.owner = by
	by.conns++
	c.all.held++
	return true
}
