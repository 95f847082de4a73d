//go:build linux && !race

package socket

import (
	"syscall"
	"unsafe"
)

// Read reads from a socket that doesn't block.
func Read(fd uintptr, b []byte) (int, error) { return call(syscall.SYS_READ, fd, b) }

// Write writes to a socket that doesn't block.
func Write(fd uintptr, b []byte) (int, error) { return call(syscall.SYS_WRITE, fd, b) }

// call makes a system call, again if a signal came in between. On an error the
// number is 0.
func call(number, fd uintptr, b []byte) (int, error) {
	for {
		n, _, fault := syscall.RawSyscall(number, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
		switch fault {
		case 0:
			return int(n), nil
		case syscall.EINTR:
		default:
			return 0, fault
		}
	}
}
