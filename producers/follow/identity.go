package follow

import (
	"os"
	"syscall"

	"github.com/cespare/xxhash/v2"
)

// fileID is where a file lies. It is given to another file once this one is
// deleted and closed.
type fileID struct{ dev, ino uint64 }

// none is the id of what is no file, or a file that is not known.
var none fileID

func idOf(fi os.FileInfo) (id fileID, links uint64) {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return none, 1
	}
	return fileID{uint64(st.Dev), st.Ino}, uint64(st.Nlink) //nolint:unconvert // they differ between systems
}

// fingerprint identifies bytes: their number and hash. The zero value is that of
// no bytes.
type fingerprint struct {
	length int
	sum    uint64
}

func fingerprintOf(b []byte) fingerprint {
	if len(b) == 0 {
		return fingerprint{}
	}
	return fingerprint{len(b), xxhash.Sum64(b)}
}

// begins reports whether b begins with the bytes of the fingerprint.
func (f fingerprint) begins(b []byte) bool {
	return len(b) >= f.length && fingerprintOf(b[:f.length]) == f
}

// is reports whether b is the bytes of the fingerprint.
func (f fingerprint) is(b []byte) bool { return fingerprintOf(b) == f }
