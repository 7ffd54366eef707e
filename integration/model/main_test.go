package model

import (
	"runtime/debug"
	"testing"

	"github.com/onbeat/onbeat/internal/testredis"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // each script call makes an interpreter of its own, and throws it away
	testredis.Main(m)
}
