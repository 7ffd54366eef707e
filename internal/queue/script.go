package queue

import (
	"embed"

	"github.com/onbeat/onbeat/internal/store"
)

//go:embed scripts/*.lua
var files embed.FS

var source = store.Sources(files)

// WakeLib is the Lua with which scripts wake the instance that watches for the next due task (lib_wake.lua). The scripts
// of package instance need it too: an instance that leaves hands its watch to another one.
var WakeLib = source("lib_wake")
