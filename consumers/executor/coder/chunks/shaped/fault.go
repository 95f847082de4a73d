package shaped

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"penstock/consumers/executor/coder/chunks"
)

// Kind is a way in which bytes are wrong.
type Kind uint8

const (
	// Right is none.
	Right Kind = iota
	// Flipped has one bit that is another.
	Flipped
	// Truncated lacks its end: half of it, or at least a byte.
	Truncated
	// Foreign is what another blob has there; zeros if there is no other.
	Foreign
	// Missing says that there is no such blob.
	Missing
)

// String names it, as in tests and on terminals.
func (k Kind) String() string {
	switch k {
	case Right:
		return "right"
	case Flipped:
		return "flipped"
	case Truncated:
		return "truncated"
	case Foreign:
		return "foreign"
	case Missing:
		return "missing"
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Kinds are all that are wrong.
var Kinds = []Kind{Flipped, Truncated, Foreign, Missing}

// Faults are what is wrong with a store.
type Faults struct {
	// Dead has every call fail at once with ErrInjected.
	Dead bool
	// Hang has calls wait until their contexts end.
	Hang bool
	// Slow multiplies delays; 0 is 1.
	Slow float64
	// ErrorEvery has each so-manieth call fail, after its delay; 0 none, 1 all.
	ErrorEvery int
	// Answer is what is wrong with the bytes that Get gives.
	Answer Kind
	// Only chooses the calls that are met, by their direction and key (of List, prefix).
	// nil is all.
	Only func(write bool, key string) bool
}

func (f *Faults) meets(write bool, key string) bool { return f.Only == nil || f.Only(write, key) }

// wrong is a Get whose answer is not what is stored.
func (s *Store) wrong(ctx context.Context, kind Kind, key string, off, n int64, w io.Writer) (int64, error) {
	var b bytes.Buffer
	if _, err := s.inner.Get(ctx, key, off, n, &b); err != nil {
		return 0, err
	}
	content, err := s.alter(ctx, kind, key, off, b.Bytes())
	if err != nil {
		return 0, err
	}
	done, err := w.Write(content)
	return int64(done), err
}

// alter makes content wrong, which stands at off of a blob. ErrNotFound for Missing.
func (s *Store) alter(ctx context.Context, kind Kind, key string, off int64, content []byte) ([]byte, error) {
	switch kind {
	case Missing:
		return nil, fmt.Errorf("get %s: %w", key, chunks.ErrNotFound)
	case Flipped:
		if len(content) > 0 {
			s.mu.Lock()
			bit := s.random.IntN(8 * len(content))
			s.mu.Unlock()
			content[bit/8] ^= 1 << (bit % 8)
		}
	case Truncated:
		content = content[:len(content)/2]
	case Foreign:
		var b bytes.Buffer
		other, err := s.other(ctx, key)
		if err == nil && other != "" {
			_, err = s.inner.Get(ctx, other, off, int64(len(content)), &b)
		}
		if err != nil && !errors.Is(err, chunks.ErrNotFound) {
			return nil, err
		}
		clear(content)
		copy(content, b.Bytes())
	}
	return content, nil
}

// other is the blob that comes after one, round about; "" if there is no other.
func (s *Store) other(ctx context.Context, key string) (string, error) {
	for _, after := range []string{key, ""} {
		found, err := s.inner.List(ctx, "", after, 1)
		if err != nil {
			return "", err
		}
		if len(found) > 0 && found[0].Key != key {
			return found[0].Key, nil
		}
	}
	return "", nil
}

// page is how many blobs Harm lists at a time.
const page = 1000

// Harm damages blobs in the store below, of those whose keys begin with prefix the ones
// that only chooses (nil: all), and says how many. Delays and faults don't hold for it.
func (s *Store) Harm(ctx context.Context, kind Kind, prefix string, only func(key string) bool) (int, error) {
	n := 0
	for after := ""; ; {
		found, err := s.inner.List(ctx, prefix, after, page)
		if err != nil {
			return n, err
		}
		for _, e := range found {
			after = e.Key
			if only != nil && !only(e.Key) {
				continue
			}
			if err := s.harm(ctx, kind, e); err != nil {
				return n, fmt.Errorf("harm %s: %w", e.Key, err)
			}
			n++
		}
		if len(found) < page {
			return n, nil
		}
	}
}

func (s *Store) harm(ctx context.Context, kind Kind, e chunks.Entry) error {
	if kind == Missing {
		return s.inner.Delete(ctx, e.Key)
	}
	var b bytes.Buffer
	if _, err := s.inner.Get(ctx, e.Key, 0, e.Bytes, &b); err != nil {
		return err
	}
	content, err := s.alter(ctx, kind, e.Key, 0, b.Bytes())
	if err != nil {
		return err
	}
	return s.inner.Put(ctx, e.Key, bytes.NewReader(content), int64(len(content)))
}
