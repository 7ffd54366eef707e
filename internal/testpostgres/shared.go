package testpostgres

import (
	"sync"
	"testing"
)

// shared is the server of a package's tests. It runs while a test uses it.
var shared struct {
	sync.Mutex
	server *Server
	users  int
}

// Database returns the URL of an empty database on the server that the package's tests share. That server does not sync to the
// disk. The database goes with the server when no test uses it any more.
func Database(t testing.TB) string {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil {
		s, err := newServer(t, "", []string{"fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=200"})
		if err != nil {
			missing(t, err)
		}
		shared.server = s
	}
	shared.users++
	t.Cleanup(release)
	url, err := shared.server.newDatabase()
	if err != nil {
		t.Fatal("testpostgres: ", err)
	}
	return url
}

func release() {
	shared.Lock()
	defer shared.Unlock()
	if shared.users--; shared.users == 0 {
		shared.server.remove()
		shared.server = nil
	}
}
