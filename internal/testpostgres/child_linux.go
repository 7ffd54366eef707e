package testpostgres

import (
	"os"
	"os/user"
	"strconv"
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
