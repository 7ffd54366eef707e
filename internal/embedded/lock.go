package embedded

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/onbeat/onbeat/internal/private"
)

// lockName is the file in a data directory whose lock says that a server uses it.
const lockName = "onbeat-redis.lock"

// lockPatience is how long to wait for a lock. A process that was killed a moment ago leaves a Redis that is about to end.
const lockPatience = time.Second

// dirLock reserves a data directory for one server. The lock is the kernel's, on an open file, so it ends with the
// processes that hold it, however they end: a stale lock file has no effect. The child inherits the lock, so a child that
// outlives its parent keeps the directory locked.
type dirLock struct {
	path    string   // absolute
	file    *os.File // nil for a directory that no other process uses, and that needs no lock
	release func()
}

func lockDir(dir string) (*dirLock, error) {
	if dir == "" {
		return passingDir()
	}
	path, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("embedded Redis: data directory %s: %w", dir, err)
	}
	if err := private.Dir(path); err != nil {
		return nil, fmt.Errorf("embedded Redis: data directory: %w", err)
	}
	for _, name := range []string{dataFile, "appendonly.aof", "appendonlydir"} { // files that Redis reads and writes there
		if err := private.Entry(filepath.Join(path, name)); err != nil {
			return nil, fmt.Errorf("embedded Redis: %w", err)
		}
	}
	f, err := openLock(filepath.Join(path, lockName))
	if err != nil {
		return nil, fmt.Errorf("embedded Redis: open the lock: %w", err)
	}
	for deadline := time.Now().Add(lockPatience); ; {
		err := tryLock(f)
		if err == nil {
			break
		}
		if !errors.Is(err, errLocked) || time.Now().After(deadline) {
			holder := readHolder(f)
			_ = f.Close()
			if errors.Is(err, errLocked) {
				return nil, fmt.Errorf("embedded Redis: %s: %w%s", dir, ErrInUse, holder)
			}
			return nil, fmt.Errorf("embedded Redis: lock %s: %w", dir, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	release := sync.OnceFunc(func() {
		_ = f.Truncate(0)
		_ = f.Close() // the lock ends with the last process that has the file open
	})
	return &dirLock{path: path, file: f, release: release}, nil
}

// passingDir makes a directory that is removed with the server. Redis wants a working directory even if it keeps nothing.
func passingDir() (*dirLock, error) {
	path, err := os.MkdirTemp("", "onbeat-redis-") // for this user only
	if err != nil {
		return nil, fmt.Errorf("embedded Redis: make a directory: %w", err)
	}
	return &dirLock{path: path, release: sync.OnceFunc(func() { _ = os.RemoveAll(path) })}, nil
}

// openLock opens a lock file. It refuses a file that note did not write, because the file will be overwritten.
func openLock(name string) (*os.File, error) {
	f, err := private.Open(name)
	if err != nil {
		return nil, err
	}
	if text, err := io.ReadAll(io.LimitReader(f, 64)); err != nil || !holders.Match(text) {
		_ = f.Close()
		return nil, cmp.Or(err, error(&private.Refusal{Name: name, Reason: "is not a lock file of onbeat", Hint: "move it away, or choose another directory"}))
	}
	return f, nil
}

// holders matches what note writes.
var holders = regexp.MustCompile(`^(\d+ \d+\n)?$`)

// note writes which processes use the directory, for the error message of the next process.
func (l *dirLock) note(child int) {
	if l.file == nil {
		return
	}
	text := fmt.Sprintf("%d %d\n", os.Getpid(), child)
	_ = l.file.Truncate(0)
	_, _ = l.file.WriteAt([]byte(text), 0)
}

// readHolder says which process holds the lock, as far as the file tells.
func readHolder(f *os.File) string {
	buf := make([]byte, 64)
	n, _ := f.ReadAt(buf, 0)
	pids := strings.Fields(string(buf[:n]))
	if len(pids) != 2 {
		return "; stop the other onbeat first, or choose another directory"
	}
	for _, pid := range pids {
		if _, err := strconv.Atoi(pid); err != nil {
			return ""
		}
	}
	return fmt.Sprintf(" by process %s (its redis-server is process %s); stop that one, or choose another directory", pids[0], pids[1])
}

// inherit returns the files that the child gets, so that it holds the lock too.
func (l *dirLock) inherit() []*os.File {
	if l.file == nil || !locksAreInherited {
		return nil
	}
	return []*os.File{l.file}
}
