package model

import (
	"runtime/debug"
	"testing"

	"github.com/onbeat/onbeat/testredis"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // each script call makes a Lua of its own, and throws it away
	testredis.Main(m)
}
