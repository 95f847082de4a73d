//go:build unix

package screen

import (
	"os"

	"golang.org/x/sys/unix"
)

// WidthOf returns a function that asks a terminal for its width in columns. Where
// the terminal doesn't know, it is 100.
func WidthOf(f *os.File) func() int {
	return func() int {
		size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
		if err != nil || size.Col == 0 {
			return 100
		}
		return int(size.Col)
	}
}
