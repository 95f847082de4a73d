//go:build unix

package testserver

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// account is the user that a server runs as: the zero value is our own. It is
// another where we are root, as which PostgreSQL refuses to run.
type account struct {
	uid, gid uint32
	other    bool
}

func unprivileged() (account, error) {
	if os.Geteuid() != 0 {
		return account{}, nil
	}
	var failed error
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			failed = err
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err1 == nil && err2 == nil {
			return account{uint32(uid), uint32(gid), true}, nil
		}
	}
	return account{}, fmt.Errorf("find a user to run as: %w", failed)
}

// give makes a file or folder the account's.
func (a account) give(path string) error {
	if !a.other {
		return nil
	}
	if err := os.Chown(path, int(a.uid), int(a.gid)); err != nil {
		return fmt.Errorf("give folder to another user: %w", err)
	}
	return nil
}

// run makes a command run as the account.
func (a account) run(cmd *exec.Cmd) {
	if !a.other {
		return
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid}
}
