package chunks

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
)

// Memory is a store that forgets: for tests, and for what may be lost.
type Memory struct {
	name  string
	mu    sync.RWMutex
	blobs map[string][]byte // whose bytes never change
}

var _ Store = (*Memory)(nil)

// believed is how many bytes are made room for before they come.
const believed = 8 << 20

// NewMemory makes an empty store.
func NewMemory(name string) *Memory { return &Memory{name: name, blobs: make(map[string][]byte)} }

// Name implements Store.
func (m *Memory) Name() string { return m.name }

// Put implements Store.
func (m *Memory) Put(ctx context.Context, key string, r io.Reader, size int64) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	var b bytes.Buffer
	if size > 0 { // as much as is said, of which not all is believed
		b.Grow(int(min(size, believed)) + bytes.MinRead)
	}
	if err := Exactly(ctx, &b, r, size); err != nil {
		return fmt.Errorf("put %s: %w", key, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.blobs[key] = b.Bytes()
	return nil
}

// Get implements Store.
func (m *Memory) Get(ctx context.Context, key string, off, n int64, w io.Writer) (int64, error) {
	if err := CheckKey(key); err != nil {
		return 0, err
	}
	if err := CheckRange(off, n); err != nil {
		return 0, err
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	m.mu.RLock()
	b, ok := m.blobs[key]
	m.mu.RUnlock()
	if !ok {
		return 0, fmt.Errorf("get %s: %w", key, ErrNotFound)
	}
	from := min(off, int64(len(b)))
	done, err := w.Write(b[from : from+min(n, int64(len(b))-from)])
	if err != nil {
		err = fmt.Errorf("get %s: %w", key, err)
	}
	return int64(done), err
}

// Delete implements Store.
func (m *Memory) Delete(ctx context.Context, key string) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.blobs, key)
	return nil
}

// List implements Store.
func (m *Memory) List(ctx context.Context, prefix, after string, limit int) ([]Entry, error) {
	if err := CheckRange(0, int64(limit)); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var all []Entry
	m.mu.RLock()
	for key, b := range m.blobs {
		if strings.HasPrefix(key, prefix) && key > after {
			all = append(all, Entry{key, int64(len(b))})
		}
	}
	m.mu.RUnlock()
	slices.SortFunc(all, func(a, b Entry) int { return strings.Compare(a.Key, b.Key) })
	return all[:min(limit, len(all))], nil
}
