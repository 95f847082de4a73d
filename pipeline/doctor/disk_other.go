//go:build !unix

package doctor

import "errors"

// freeBytes is not known here.
func freeBytes(string) (int64, error) {
	return 0, errors.New("the free space is not known on this system")
}

// accessible shows only in use here.
func accessible(string) error { return nil }
