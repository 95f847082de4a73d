package statefile

import (
	"os"

	"golang.org/x/sys/unix"
)

// swap gives the file at from the name to, and that which had it the name from.
// File systems that cannot, and a name that is new, get a rename.
func swap(from, to string) error {
	if unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_EXCHANGE) == nil {
		return nil
	}
	return os.Rename(from, to)
}
