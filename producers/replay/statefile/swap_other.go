//go:build !linux

package statefile

import "os"

// swap gives the file at from the name to.
func swap(from, to string) error { return os.Rename(from, to) }
