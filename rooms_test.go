package onbeat_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// rooms are the packages from the top down: each imports only what is below it, and of its own floor only what is listed
// behind it.
var rooms = [][]string{
	{"cmd/onbeat"},
	{"cmd/onbeat/internal/config", "cmd/onbeat/internal/conformance", "cmd/onbeat/internal/doctor", "api/dashboard", "telemetry"},
	{"api", "client", "archive/sqlarchive", "postgres"},
	{"."},
	{"admin > admin/audit", "admin/audit"},
	{"internal/split"},
	{
		"outbox > producer", "producer > instance", "consumer > handlers instance", "internal/archiver > instance", "instance", "handlers > lock", "lock",
		"handlers/notify > handlers instance producer",
	},
	{"internal/past"},
	{"internal/queue"},
	{"internal/history", "internal/store", "internal/tracing"},
	{"archive"},
	{"internal/seal", "internal/field", "schedule"},
	{"task"},
}

// Data flows one way, and so do imports. The packages beside the house (embedded, testredis, the benches) are not in the
// list. Only the program and tests may use them.
func TestRooms_importOnlyWhatIsBelow(t *testing.T) {
	t.Parallel()
	floor, beside := map[string]int{}, map[string][]string{}
	for i, names := range rooms {
		for _, name := range names {
			name, allowed, _ := strings.Cut(name, " > ")
			floor[name], beside[name] = i, strings.Fields(allowed)
		}
	}
	seen := map[string]bool{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(filepath.Dir(path))
		at, ok := floor[dir]
		if d.IsDir() || !ok || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		seen[dir] = true
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			name, ok := ownPackage(spec.Path.Value)
			to, known := floor[name]
			if !ok || dir == "cmd/onbeat" || !known && strings.HasPrefix(name, "internal/") {
				continue
			}
			switch {
			case !known:
				t.Errorf("%s imports %s, which is beside the house", path, name)
			case to < at || to == at && !slices.Contains(beside[dir], name):
				t.Errorf("%s imports %s, which is not below it", path, name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range floor {
		if !seen[name] {
			t.Errorf("there is no package %s", name)
		}
	}
}

func ownPackage(quoted string) (string, bool) {
	path, err := strconv.Unquote(quoted)
	if err != nil {
		return "", false
	}
	const module = "github.com/onbeat/onbeat"
	if path == module {
		return ".", true
	}
	return strings.CutPrefix(path, module+"/")
}
