package handlers

import (
	"net"
	"net/netip"
	"syscall"
)

// IsPublic is for tests.
func IsPublic(a netip.Addr) bool { return isPublic(a) }

// GuardedHTTP is the http handler with DenyPrivate, which lets one address through: the tests have no public one.
func GuardedHTTP(allowed string) TaskHandler {
	return newHTTP(HTTPConfig{DenyPrivate: true}.withDefaults(), &net.Dialer{Control: func(network, address string, c syscall.RawConn) error {
		if address == allowed {
			return nil
		}
		return denyPrivate(network, address, c)
	}}, nil)
}

// DenyPrivate is for tests.
func DenyPrivate(address string) error { return denyPrivate("tcp", address, nil) }

// CachedHTTP is how many payloads an http handler has ready.
func CachedHTTP(h TaskHandler) int {
	c := &h.(*httpHandler).cache
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.calls)
}
