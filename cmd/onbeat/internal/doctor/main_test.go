package doctor

import (
	"testing"

	_ "modernc.org/sqlite"

	"github.com/onbeat/onbeat/internal/testredis"
	_ "github.com/onbeat/onbeat/postgres"
)

func TestMain(m *testing.M) { testredis.Main(m) }
