package testserver

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// apart puts a program into a session of its own, so that an interrupt from the
// terminal reaches the test binary only, whose end then ends the program.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

func tryLock(f *os.File) (bool, error) {
	switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err {
	case nil:
		return true, nil
	case unix.EWOULDBLOCK, unix.EINTR:
		return false, nil
	default:
		return false, err
	}
}

// hasAttributes reports whether files in a folder can have attributes of the
// size that a server needs, which some file systems in memory can't.
func hasAttributes(folder string) bool {
	name := filepath.Join(folder, "attributes")
	if os.WriteFile(name, nil, 0o600) != nil {
		return false
	}
	defer func() { _ = os.Remove(name) }()
	return unix.Setxattr(name, "user.penstock", make([]byte, 1024), 0) == nil
}
