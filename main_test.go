package onbeat_test

import (
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/precise"
	"github.com/onbeat/onbeat/internal/testredis"
)

func TestMain(m *testing.M) {
	precise.Use(time.Sleep) // some tests are in virtual time
	testredis.Main(m)
}
