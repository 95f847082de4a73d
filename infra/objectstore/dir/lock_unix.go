//go:build unix

package dir

import (
	"errors"
	"os"
	"syscall"
)

// barrier: other processes are kept off too.
const barrier = true

// tryLock takes the exclusive flock on an open folder, or reports that another
// has it.
func tryLock(dir *os.File) (bool, error) {
	for {
		err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		case errors.Is(err, syscall.EINTR):
		default:
			return false, err
		}
	}
}

// same reports whether the open folder is the one at the path.
func same(dir *os.File, path string) bool {
	var a, b syscall.Stat_t
	return syscall.Fstat(int(dir.Fd()), &a) == nil && syscall.Stat(path, &b) == nil && a.Ino == b.Ino && a.Dev == b.Dev
}

// inode tells files of one size and time apart.
func inode(info os.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ino
	}
	return 0
}
