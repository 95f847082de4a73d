//go:build unix

package doctor

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// freeBytes is what a user may still write on the file system of a folder.
func freeBytes(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, fmt.Errorf("file system of %s: %w", dir, err)
	}
	return int64(s.Bavail) * int64(s.Bsize), nil //nolint:unconvert // Their types differ between systems.
}

// accessible tells whether files in a folder may be listed, made and removed; it makes
// none.
func accessible(dir string) error {
	if err := unix.Access(dir, unix.R_OK|unix.W_OK|unix.X_OK); err != nil {
		return fmt.Errorf("folder %s: %w", dir, err)
	}
	return nil
}
