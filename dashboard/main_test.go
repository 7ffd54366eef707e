package dashboard

import (
	"testing"

	"github.com/onbeat/onbeat/testredis"
)

func TestMain(m *testing.M) { testredis.Main(m) }
