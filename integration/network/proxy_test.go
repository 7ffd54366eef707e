package network

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/internal/embedded"
)

// link is the network between one instance and Redis.
type link struct {
	t     *testing.T
	proxy *toxiproxy.Proxy
}

func newLink(t *testing.T, name, upstream string) *link {
	t.Helper()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	// Not a port of the kernel's choice: a client that redials a proxy that is down could be connected to itself.
	port, err := embedded.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	l := &link{t: t, proxy: toxiproxy.NewProxy(server, name, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), upstream)}
	l.up()
	t.Cleanup(l.proxy.Stop)
	return l
}

// up lets connections through.
func (l *link) up() {
	l.t.Helper()
	if err := l.proxy.Start(); err != nil {
		l.t.Fatalf("start the proxy: %v", err)
	}
}

// down closes every connection and refuses new ones.
func (l *link) down() { l.proxy.Stop() }

// toxic makes the link behave badly in one direction: "downstream" is from Redis.
func (l *link) toxic(kind, direction, attributes string) {
	l.t.Helper()
	text := fmt.Sprintf(`{"name": "%s-%s", "type": %q, "stream": %q, "attributes": {%s}}`, kind, direction, kind, direction, attributes)
	if _, err := l.proxy.Toxics.AddToxicJson(strings.NewReader(text)); err != nil {
		l.t.Fatalf("%s: %v", text, err)
	}
}

// swallow drops all data that is sent in the directions, and closes nothing: neither side learns of it.
func (l *link) swallow(directions ...string) {
	l.t.Helper()
	for _, direction := range directions {
		l.toxic("timeout", direction, `"timeout": 0`)
	}
}

// heal ends everything that toxic and swallow began. Swallowed data stays lost, and its connections close.
func (l *link) heal() {
	l.t.Helper()
	l.proxy.Toxics.ResetToxics(context.Background())
}
