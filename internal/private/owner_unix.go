//go:build unix

package private

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// owned says that files have owners on this system.
const owned = true

const (
	noFollow = syscall.O_NOFOLLOW
	noWait   = syscall.O_NONBLOCK // for a pipe without a writer
)

// checkOwner refuses a file that belongs neither to this user nor to root.
func checkOwner(name string, info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	if me := os.Geteuid(); int64(stat.Uid) != int64(me) && stat.Uid != 0 {
		return &Refusal{name, fmt.Sprintf("belongs to user %d, and not to you (%d)", stat.Uid, me), "remove it, or work in your own folder"}
	}
	return nil
}
