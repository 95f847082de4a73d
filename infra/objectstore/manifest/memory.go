package manifest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
	"time"

	"penstock/infra/clock"
	"penstock/infra/objectstore"
)

// Memory is a Backend that keeps everything in memory: the reference for others,
// and a place for tests. Several Stores over one Memory are as several processes
// over one bucket.
type Memory struct {
	clock clock.Clock
	mu    sync.Mutex
	next  uint64
	docs  map[string]memoryDoc
	blobs map[string]map[string]memoryBlob
	plain map[string]map[string]string // by owner and name: blob id
}

type memoryDoc struct {
	body     []byte
	revision uint64
}

type memoryBlob struct {
	content  []byte
	modified time.Time
	plain    bool
}

var _ Backend = (*Memory)(nil)

// NewMemory returns an empty Memory that stamps blobs with the time of c; nil is
// the machine's clock.
func NewMemory(c clock.Clock) *Memory {
	if c == nil {
		c = clock.System()
	}
	return &Memory{
		clock: c, docs: map[string]memoryDoc{}, blobs: map[string]map[string]memoryBlob{},
		plain: map[string]map[string]string{},
	}
}

// Capabilities are a barrier; nothing outlives the process.
func (*Memory) Capabilities() objectstore.Capabilities {
	return objectstore.Capabilities{Barrier: true}
}

// Get returns a copy of the document.
func (m *Memory) Get(ctx context.Context, owner string) ([]byte, string, error) {
	if err := ctx.Err(); err != nil {
		return nil, "", err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	d, ok := m.docs[owner]
	if !ok {
		return nil, "", objectstore.ErrNoOwner
	}
	return bytes.Clone(d.body), strconv.FormatUint(d.revision, 10), nil
}

// Set compares and sets under one lock; its outcome is always known.
func (m *Memory) Set(ctx context.Context, owner string, body []byte, revision string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	have := ""
	if d, ok := m.docs[owner]; ok {
		have = strconv.FormatUint(d.revision, 10)
	}
	if have != revision {
		return "", ErrConflict
	}
	m.next++
	m.docs[owner] = memoryDoc{bytes.Clone(body), m.next}
	return strconv.FormatUint(m.next, 10), nil
}

// Owners lists owners ascending.
func (m *Memory) Owners(ctx context.Context, fn func(string) error) error {
	m.mu.Lock()
	var owners []string
	for o := range m.docs {
		owners = append(owners, o)
	}
	for o := range m.plain {
		owners = append(owners, o)
	}
	m.mu.Unlock()
	slices.Sort(owners)
	for _, o := range slices.Compact(owners) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := fn(o); err != nil {
			return err
		}
	}
	return nil
}

// PutBlob reads r to its end. What broke off is left, as elsewhere.
func (m *Memory) PutBlob(ctx context.Context, owner, id string, r io.Reader) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	content, err := io.ReadAll(r)
	m.put(owner, id, memoryBlob{content: content, modified: m.clock.Now()})
	return int64(len(content)), err
}

func (m *Memory) put(owner, id string, b memoryBlob) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.blobs[owner] == nil {
		m.blobs[owner] = map[string]memoryBlob{}
	}
	m.blobs[owner][id] = b
}

// OpenBlob opens what is there now; a deletion does not end the reading.
func (m *Memory) OpenBlob(ctx context.Context, owner, id string) (io.ReadCloser, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	b, ok := m.blobs[owner][id]
	if !ok {
		return nil, fmt.Errorf("blob %.80q: %w", id, objectstore.ErrNoObject)
	}
	return io.NopCloser(bytes.NewReader(b.content)), nil
}

// DeleteBlob deletes a blob or a plain object.
func (m *Memory) DeleteBlob(ctx context.Context, owner, id string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.blobs[owner], id)
	if len(m.blobs[owner]) == 0 {
		delete(m.blobs, owner)
	}
	for name, p := range m.plain[owner] {
		if p == id {
			delete(m.plain[owner], name)
		}
	}
	if len(m.plain[owner]) == 0 {
		delete(m.plain, owner)
	}
	return nil
}

// Blobs lists blobs ascending by id.
func (m *Memory) Blobs(ctx context.Context, owner string, fn func(string, time.Time) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	found := map[string]time.Time{}
	var ids []string
	for id, b := range m.blobs[owner] {
		if !b.plain {
			found[id] = b.modified
			ids = append(ids, id)
		}
	}
	m.mu.Unlock()
	slices.Sort(ids)
	for _, id := range ids {
		if err := fn(id, found[id]); err != nil {
			return err
		}
	}
	return nil
}

// Plant makes a plain object, as somebody does who knows nothing of Penstock.
func (m *Memory) Plant(owner, name, content string) {
	id := "plain/" + name
	m.put(owner, id, memoryBlob{content: []byte(content), modified: m.clock.Now(), plain: true})
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.plain[owner] == nil {
		m.plain[owner] = map[string]string{}
	}
	m.plain[owner][name] = id
}

// Plain lists planted objects ascending by name.
func (m *Memory) Plain(ctx context.Context, owner string, fn func(name, id string, size int64, version string) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	type object struct {
		name, id, version string
		size              int64
	}
	m.mu.Lock()
	var all []object
	for name, id := range m.plain[owner] {
		b := m.blobs[owner][id]
		all = append(all, object{name, id, strconv.FormatInt(b.modified.UnixNano(), 36), int64(len(b.content))})
	}
	m.mu.Unlock()
	slices.SortFunc(all, func(a, b object) int {
		if a.name < b.name {
			return -1
		}
		return 1
	})
	for _, o := range all {
		if err := fn(o.name, o.id, o.size, o.version); err != nil {
			return err
		}
	}
	return nil
}
