package dir

import "golang.org/x/sys/unix"

// identity is a folder's number, and when it was made: numbers are used again.
type identity struct {
	inode  uint64
	device uint64
	second int64
	nano   uint32
}

// identityOf tells nothing for a file system that doesn't know when files were made.
func identityOf(fd int) (id identity, can bool) {
	var s unix.Statx_t
	if unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_INO|unix.STATX_BTIME, &s) != nil || s.Mask&unix.STATX_BTIME == 0 {
		return id, false
	}
	return identity{s.Ino, unix.Mkdev(s.Dev_major, s.Dev_minor), s.Btime.Sec, s.Btime.Nsec}, true
}
