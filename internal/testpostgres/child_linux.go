package testpostgres

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"
	"syscall"
)

// asChild makes a child end with the test, however the test ends, and run as the user postgres if the test is root.
func asChild() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Pdeathsig: syscall.SIGINT, Setpgid: true}
	if os.Getuid() == 0 {
		if uid, gid, err := account(); err == nil {
			attr.Credential = &syscall.Credential{Uid: uid, Gid: gid}
		}
	}
	return attr
}

// give makes a folder that of the user who runs the server.
func give(dir string) error {
	if os.Getuid() != 0 {
		return nil
	}
	uid, gid, err := account()
	if err != nil {
		return err
	}
	return os.Chown(dir, int(uid), int(gid))
}

func account() (uid, gid uint32, err error) {
	u, err := user.Lookup("postgres")
	if err != nil {
		return 0, 0, err
	}
	n, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return 0, 0, err
	}
	m, err := strconv.ParseUint(u.Gid, 10, 32)
	return uint32(n), uint32(m), err
}

// freeze stops a server and then its sessions, because one that is stopped begins none; or lets them go on.
func freeze(pid int, stop bool) error {
	sig := syscall.SIGCONT
	if stop {
		sig = syscall.SIGSTOP
	}
	if err := syscall.Kill(pid, sig); err != nil {
		return err
	}
	sessions, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	for _, word := range strings.Fields(string(sessions)) {
		child, wrong := strconv.Atoi(word)
		if wrong == nil {
			wrong = syscall.Kill(child, sig)
		}
		if wrong != nil && !errors.Is(wrong, syscall.ESRCH) {
			err = errors.Join(err, wrong)
		}
	}
	return err
}
