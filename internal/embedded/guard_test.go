package embedded_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/embedded"
)

// kinds are the ways to run a server here.
func kinds(t *testing.T) map[string]embedded.Options {
	t.Helper()
	all := map[string]embedded.Options{"in-process": {InProcess: true}}
	if _, err := exec.LookPath("redis-server"); err == nil {
		all["child"] = embedded.Options{}
	}
	return all
}

func TestStart_letsNobodyInWithoutThePassword(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for name, opts := range kinds(t) {
		for range 2 {
			s := start(t, opts)
			stranger := redis.NewClient(&redis.Options{Addr: s.Addr()})
			err := stranger.Set(t.Context(), "k", "v", 0).Err()
			if _ = stranger.Close(); err == nil || !strings.Contains(err.Error(), "NOAUTH") {
				t.Errorf("%s: without the password: %v", name, err)
			}
			if err := client(t, s).Ping(t.Context()).Err(); err != nil {
				t.Errorf("%s: by its URL: %v", name, err)
			}
			parsed, err := redis.ParseURL(s.URL())
			if err != nil || len(parsed.Password) < 20 || seen[parsed.Password] {
				t.Errorf("%s: the password is %q, %v; want a long one, each time another", name, parsed.Password, err)
			}
			seen[parsed.Password] = true
			if strings.Contains(s.String()+s.Addr()+s.Version(), parsed.Password) {
				t.Errorf("%s: it shows its password: %s", name, s)
			}
		}
	}
}

func TestStart_withoutPasswordIsOpenToThisMachine(t *testing.T) {
	t.Parallel()
	for name, opts := range kinds(t) {
		opts.NoPassword = true
		s := start(t, opts)
		if want := "redis://" + s.Addr() + "/0"; s.URL() != want {
			t.Errorf("%s: URL %s, want %s", name, s.URL(), want)
		}
		rdb := redis.NewClient(&redis.Options{Addr: s.Addr()})
		if err := rdb.Ping(t.Context()).Err(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		_ = rdb.Close()
	}
}

// All users of the machine can read the command line of a process.
func TestStart_passwordIsOnNoCommandLine(t *testing.T) {
	needServer(t)
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has /proc")
	}
	t.Parallel()
	s := start(t, embedded.Options{Dir: t.TempDir()})
	parsed, err := redis.ParseURL(s.URL())
	if err != nil || parsed.Password == "" {
		t.Fatalf("%v, %v", parsed, err)
	}
	for _, file := range []string{"cmdline", "environ", "comm"} {
		name := filepath.Join("/proc", strconv.Itoa(s.PID()), file)
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), parsed.Password) {
			t.Errorf("%s holds the password: %q", name, text)
		}
	}
	dir, err := client(t, s).ConfigGet(t.Context(), "dir").Result()
	if err != nil {
		t.Fatal(err)
	}
	_ = filepath.WalkDir(dir["dir"], func(name string, _ os.DirEntry, _ error) error {
		if text, err := os.ReadFile(name); err == nil && strings.Contains(string(text), parsed.Password) {
			t.Errorf("%s holds the password", name)
		}
		return nil
	})
}

func TestStart_childWorksInAFolderOfItsOwn(t *testing.T) {
	needServer(t)
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	plant(t, filepath.Join(temp, "dump.rdb"))
	s := start(t, embedded.Options{})
	rdb := client(t, s)
	if keys, err := rdb.Keys(t.Context(), "*").Result(); len(keys) > 0 || err != nil {
		t.Errorf("it began with what another left in the temporary folder: %v, %v", keys, err)
	}
	got, err := rdb.ConfigGet(t.Context(), "d*").Result()
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(got["dir"])
	if err != nil || got["dir"] == temp || info.Mode().Perm() != 0o700 {
		t.Errorf("it works in %s, %v, %v; want a folder for this user only", got["dir"], info, err)
	}
	if got["dbfilename"] == "dump.rdb" {
		t.Error("its file is named as anybody's")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(got["dir"]); err == nil {
		t.Errorf("%s is left", got["dir"])
	}
}

// plant leaves a file of a Redis that holds a key.
func plant(t *testing.T, name string) {
	t.Helper()
	s := start(t, embedded.Options{Args: []string{"--dir", filepath.Dir(name), "--dbfilename", filepath.Base(name)}})
	rdb := client(t, s)
	if err := rdb.Set(t.Context(), "foreign", "1", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := rdb.Save(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// awaitRefusal starts a server that must be refused, with one line that says all of it.
func awaitRefusal(t *testing.T, what string, opts embedded.Options, want ...string) {
	t.Helper()
	s, err := embedded.Start(t.Context(), opts)
	if err == nil {
		_ = s.Close()
		t.Errorf("%s: it started", what)
		return
	}
	for _, part := range want {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v, want it to say %q", what, err, part)
		}
	}
}

func TestStart_followsNoLinkInItsFolder(t *testing.T) {
	needServer(t)
	t.Parallel()
	elsewhere := t.TempDir()
	precious := filepath.Join(elsewhere, "precious")
	for _, name := range []string{"onbeat-redis.lock", "appendonlydir", "appendonly.aof", "onbeat.rdb", "appendonlydir/appendonly.aof.manifest"} {
		if err := os.WriteFile(precious, []byte("12 34\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(precious, filepath.Join(dir, name)); err != nil {
			t.Skip("no links here:", err)
		}
		awaitRefusal(t, name, embedded.Options{Dir: dir}, name, "symbolic link", "(remove it")
		if text, _ := os.ReadFile(precious); string(text) != "12 34\n" {
			t.Errorf("%s: what it leads to holds %q", name, text)
		}
	}
}

func TestStart_leavesAFileAloneThatIsNoLock(t *testing.T) {
	needServer(t)
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "onbeat-redis.lock")
	if err := os.WriteFile(name, []byte("dear diary"), 0o600); err != nil {
		t.Fatal(err)
	}
	awaitRefusal(t, "a diary", embedded.Options{Dir: dir}, "is not a lock file of onbeat")
	if text, _ := os.ReadFile(name); string(text) != "dear diary" {
		t.Errorf("it holds %q", text)
	}
}

func TestStart_refusesAFolderThatOthersMayWriteTo(t *testing.T) {
	needServer(t)
	if runtime.GOOS == "windows" {
		t.Skip("folders have no mode here")
	}
	t.Parallel()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	awaitRefusal(t, "a folder for all", embedded.Options{Dir: dir}, "others may write to it", "chmod go-w")
	if list, _ := os.ReadDir(dir); len(list) > 0 {
		t.Errorf("it wrote %v", list)
	}
}
