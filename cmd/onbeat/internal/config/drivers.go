//go:build !demo

package config

// The databases of archives and outboxes. A demo needs neither, and they take longer to compile than all the rest.
import (
	_ "modernc.org/sqlite"

	_ "github.com/onbeat/onbeat/postgres"
)
