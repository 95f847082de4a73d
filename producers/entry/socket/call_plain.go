//go:build unix && (!linux || race)

package socket

import (
	"errors"
	"syscall"
)

// Read reads from a socket that doesn't block.
func Read(fd uintptr, b []byte) (int, error) { return call(syscall.Read, fd, b) }

// Write writes to a socket that doesn't block.
func Write(fd uintptr, b []byte) (int, error) { return call(syscall.Write, fd, b) }

// call makes a system call, again if a signal came in between. On an error the
// number is 0.
func call(do func(int, []byte) (int, error), fd uintptr, b []byte) (int, error) {
	for {
		n, err := do(int(fd), b)
		if !errors.Is(err, syscall.EINTR) {
			return max(n, 0), err
		}
	}
}
