package chunks

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// Store keeps blobs. All methods may be called by many goroutines. When ctx ends they
// return soon, with its error, and hold nothing any more: no socket, no file.
type Store interface {
	// Name is the store's in the configuration and in version documents.
	Name() string
	// Put stores size bytes of r under a key, whole or not at all: when it returns
	// nil the blob is there and stays after a crash, and before that nobody sees a
	// part of it. A blob that was there is replaced whole. After an error it isn't
	// known which of the two is there, but ErrKey and ErrSize change nothing.
	Put(ctx context.Context, key string, r io.Reader, size int64) error
	// Get writes up to n bytes from byte off on, and says how many. Fewer without an
	// error means that the blob ends there. It returns ErrNotFound if there is none.
	Get(ctx context.Context, key string, off, n int64, w io.Writer) (int64, error)
	// Delete removes a blob for good. One that isn't there is no error.
	Delete(ctx context.Context, key string) error
	// List returns at most limit blobs whose keys begin with prefix and come after
	// after, in ascending order of bytes. Fewer than limit means that there are no
	// more. Blobs that come or go meanwhile may or may not be listed; others are.
	List(ctx context.Context, prefix, after string, limit int) ([]Entry, error)
}

// Tidier is a store in which somebody who dies in a Put can leave what is no blob and
// takes room: parts of it.
type Tidier interface {
	Store
	// Tidy removes what was left before a time, and says of how many Puts. The time must
	// lie so far back that none of those is still going on.
	Tidy(ctx context.Context, before time.Time) (int, error)
}

// Entry is a blob in a listing.
type Entry struct {
	Key   string
	Bytes int64
}

const (
	// MaxKey is the most bytes of a key.
	MaxKey = 512
	// MaxPart is the most bytes of a part of a key.
	MaxPart = 200
)

// CheckKey returns ErrKey unless the key is parts of [A-Za-z0-9._=-], divided by
// slashes, of which none begins with a dot. The coder makes keys itself; a client's
// never gets here. So there are no path tricks, whatever a store makes of a key.
func CheckKey(key string) error {
	if len(key) > MaxKey {
		return fmt.Errorf("%w: %d bytes", ErrKey, len(key))
	}
	for part := range strings.SplitSeq(key, "/") {
		if part == "" || part[0] == '.' || len(part) > MaxPart || strings.ContainsFunc(part, forbidden) {
			return fmt.Errorf("%w: %q", ErrKey, key)
		}
	}
	return nil
}

func forbidden(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		return false
	}
	return !strings.ContainsRune("._=-", r)
}

// CheckRange returns ErrRange for a negative offset or length.
func CheckRange(off, n int64) error {
	if off < 0 || n < 0 {
		return fmt.Errorf("%w: %d bytes at %d", ErrRange, n, off)
	}
	return nil
}

// Exactly copies size bytes from r to w and sees to it that there are no more, until
// ctx ends. It returns ErrSize for fewer or more, and r's, w's and ctx's errors.
func Exactly(ctx context.Context, w io.Writer, r io.Reader, size int64) error {
	if size < 0 {
		return fmt.Errorf("%w: %d bytes", ErrSize, size)
	}
	r = &until{ctx, r}
	b := buffers.Get().(*[step]byte) //nolint:forcetypeassert // nothing else is put there
	n, err := io.CopyBuffer(struct{ io.Writer }{w}, io.LimitReader(r, size), b[:])
	buffers.Put(b)
	if err != nil {
		return err
	}
	if n < size {
		return fmt.Errorf("%w: %d of %d bytes", ErrSize, n, size)
	}
	var more [1]byte
	switch n, err := io.ReadFull(r, more[:]); {
	case n > 0:
		return fmt.Errorf("%w: more than %d bytes", ErrSize, size)
	case err != io.EOF:
		return err
	}
	return ctx.Err()
}

// step is how much Fill and Exactly read at a time, so that a Bounded reader looks at its
// context.
const step = 128 << 10

// buffers are what Exactly copies through.
var buffers = sync.Pool{New: func() any { return new([step]byte) }}

// Fill reads as many bytes as b holds. It returns ErrSize if r has fewer, and r's errors;
// a wrapped io.EOF is one of them, no end.
func Fill(r io.Reader, b []byte) error {
	for n, idle := 0, 0; n < len(b); {
		m, err := r.Read(b[n:min(len(b), n+step)])
		n += m
		if idle++; m > 0 {
			idle = 0
		}
		switch {
		case n == len(b): // an error comes again
		case err == io.EOF:
			return fmt.Errorf("%w: %d bytes less", ErrSize, len(b)-n)
		case err != nil:
			return err
		case idle == maxIdle:
			return io.ErrNoProgress
		}
	}
	return nil
}

// Whole fills b with all that r has, until ctx ends. It returns ErrSize if r has fewer or
// more bytes, and r's and ctx's errors.
func Whole(ctx context.Context, r io.Reader, b []byte) error {
	if err := Fill(Bounded(ctx, r), b); err != nil {
		return err
	}
	return Exactly(ctx, io.Discard, r, 0)
}

// maxIdle is how often in a row a reader may give nothing and no error.
const maxIdle = 100

// Bounded is r until ctx ends: reads after that return its error.
func Bounded(ctx context.Context, r io.Reader) io.Reader { return &until{ctx, r} }

type until struct {
	ctx context.Context
	r   io.Reader
}

func (u *until) Read(b []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.r.Read(b)
}
