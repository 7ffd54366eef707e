package handlers

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"
)

// ErrDenied is returned by the http handler, as a [Dead] error, if the operator forbids private addresses and the URL, or a
// redirect from it, leads to one.
var ErrDenied = errors.New("address not allowed")

// denyPrivate is a net.Dialer.Control. It sees the address of each connection, after every look-up of a name, so that a
// name that first resolves to one address and later to another gains nothing.
func denyPrivate(_, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: not an IP address and port", ErrDenied)
	}
	if !isPublic(ap.Addr()) {
		return fmt.Errorf("%w: %s is not a public address", ErrDenied, ap.Addr())
	}
	return nil
}

// isPublic reports whether an address belongs to the public internet. These are not public: loopback, private, link-local
// (with the metadata services of clouds), carrier-shared and multicast addresses, those reserved for documents and tests,
// and IPv6 addresses that stand for such an IPv4 address.
//
// It cannot know a NAT64 prefix of the local network, which looks like any other address of that network.
func isPublic(a netip.Addr) bool {
	a = a.WithZone("").Unmap()
	if a.Is4() {
		return !inAny(notPublic4, a)
	}
	for _, v4 := range carried(a) {
		if inAny(notPublic4, v4) {
			return false
		}
	}
	return nat64.Contains(a) || global6.Contains(a) && !inAny(notPublic6, a)
}

func inAny(list []netip.Prefix, a netip.Addr) bool {
	for _, p := range list {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// carried returns the IPv4 addresses that an IPv6 address embeds, to which a gateway or a tunnel forwards: NAT64 (RFC
// 6052), 6to4 (RFC 3056) and ISATAP (RFC 5214). Teredo is refused as a whole.
func carried(a netip.Addr) (list []netip.Addr) {
	b := a.As16()
	if sixToFour.Contains(a) {
		list = append(list, netip.AddrFrom4([4]byte(b[2:6])))
	}
	if nat64.Contains(a) || b[8]&^0x02 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe {
		list = append(list, netip.AddrFrom4([4]byte(b[12:16])))
	}
	return list
}

var (
	global6   = netip.MustParsePrefix("2000::/3") // all that is assigned; the rest is local or unassigned
	nat64     = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour = netip.MustParsePrefix("2002::/16")

	notPublic4 = prefixes(
		"0.0.0.0/8",        // this host
		"10.0.0.0/8",       // private
		"100.64.0.0/10",    // shared by a carrier
		"127.0.0.0/8",      // loopback
		"168.63.129.16/32", // the host's services in Azure, among them metadata
		"169.254.0.0/16",   // link-local, cloud metadata
		"172.16.0.0/12",    // private
		"192.0.0.0/24",     // protocol assignments
		"192.0.2.0/24",     // documents
		"192.88.99.0/24",   // 6to4 relays, withdrawn
		"192.168.0.0/16",   // private
		"198.18.0.0/15",    // benchmarks
		"198.51.100.0/24",  // documents
		"203.0.113.0/24",   // documents
		"224.0.0.0/4",      // multicast
		"240.0.0.0/4",      // reserved, broadcast
	)
	notPublic6 = prefixes(
		"2001::/23",     // protocol assignments, among them Teredo
		"2001:db8::/32", // documents
		"3fff::/20",     // documents
	)
)

func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, s := range list {
		out[i] = netip.MustParsePrefix(s)
	}
	return out
}
