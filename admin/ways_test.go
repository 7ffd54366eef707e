package admin_test

import (
	"net/http/httptest"
	"testing"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/api"
	"github.com/onbeat/onbeat/client"
)

// way returns the admin of a dispatcher's namespace.
type way func(*onbeat.Dispatcher) *admin.Admin

// ways runs a test twice: on the admin itself, and on a client of the API that serves it.
func ways(t *testing.T, test func(t *testing.T, of way)) {
	t.Helper()
	t.Run("direct", func(t *testing.T) {
		t.Parallel()
		test(t, (*onbeat.Dispatcher).Admin)
	})
	t.Run("http", func(t *testing.T) {
		t.Parallel()
		test(t, func(d *onbeat.Dispatcher) *admin.Admin { return served(t, d.Admin()) })
	})
}

// served returns a client of an API that serves a, until the test ends.
func served(t *testing.T, a *admin.Admin) *admin.Admin {
	t.Helper()
	s, err := api.New(a, api.Config{})
	must(t, err)
	server := httptest.NewServer(s)
	t.Cleanup(func() {
		s.Close()
		server.Close()
	})
	c, err := client.New(server.URL, client.Options{HTTP: server.Client()})
	must(t, err)
	return c
}
