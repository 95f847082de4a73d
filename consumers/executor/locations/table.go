package locations

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"penstock/infra/bus"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// Table is where owners are. It is safe for concurrent use.
type Table interface {
	// Get returns an owner's entry and its revision; revision 0 and the zero
	// Location if there is none.
	Get(ctx context.Context, owner string) (control.Location, uint64, error)
	// Set writes an entry if its revision is still the given one (0: there must
	// be none) and returns the new one, else ErrConflict. After any other error
	// it is unknown whether it was written: read it again.
	Set(ctx context.Context, owner string, l control.Location, revision uint64) (uint64, error)
	// List calls fn for every entry, in no particular order, until its first
	// error, which it returns.
	List(ctx context.Context, fn func(owner string, l control.Location) error) error
}

// Entry is an owner's entry with its revision, 0 for none.
type Entry struct {
	Owner string
	control.Location
	Revision uint64
	// Bytes is what an import says is stored of the owner, 0 if it doesn't say. It
	// is told to deciders and is no part of the table.
	Bytes int64
}

// Bulk is a table that can take and give many entries at once. Both of this
// package can.
type Bulk interface {
	Table
	// Entries is List with revisions.
	Entries(ctx context.Context, fn func(Entry) error) error
	// SetAll writes entries, of different owners and at most bus.MaxBatch, all or
	// none, each if its revision is still the one it bears, and puts the new
	// revisions there. After ErrConflict or ErrSingly nothing was written; after
	// any other error it is unknown which were.
	SetAll(ctx context.Context, entries []Entry) error
}

// KV is the table on the bus.
type KV struct {
	client *bus.Client
	kv     jetstream.KeyValue
}

// Open opens the bucket of the bus.
func Open(ctx context.Context, c *bus.Client) (*KV, error) {
	kv, err := c.KV(ctx, subject.LocationsKV)
	if err != nil {
		return nil, fmt.Errorf("open locations: %w", err)
	}
	return &KV{c, kv}, nil
}

// Get reads the entry.
func (t *KV) Get(ctx context.Context, owner string) (control.Location, uint64, error) {
	e, err := t.kv.Get(ctx, subject.Encode(owner))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return control.Location{}, 0, nil
	}
	if err != nil {
		return control.Location{}, 0, fmt.Errorf("location of %.80q: %w", owner, err)
	}
	l, err := control.DecodeLocation(e.Value())
	if err != nil {
		return control.Location{}, 0, fmt.Errorf("location of %.80q: %w", owner, err)
	}
	return *l, e.Revision(), nil
}

// Set writes the entry under its revision.
func (t *KV) Set(ctx context.Context, owner string, l control.Location, revision uint64) (uint64, error) {
	b, err := control.Encode(l)
	if err != nil {
		return 0, err
	}
	var next uint64
	if revision == 0 {
		next, err = t.kv.Create(ctx, subject.Encode(owner), b)
	} else {
		next, err = t.kv.Update(ctx, subject.Encode(owner), b, revision)
	}
	var api *jetstream.APIError
	if errors.Is(err, jetstream.ErrKeyExists) ||
		errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence {
		return 0, fmt.Errorf("location of %.80q: %w", owner, ErrConflict)
	}
	if err != nil {
		return 0, fmt.Errorf("location of %.80q: %w", owner, err)
	}
	return next, nil
}

// SetAll writes the entries with one sync. ErrSingly comes from a bucket that was
// made before batches were thought of, and for a single entry.
func (t *KV) SetAll(ctx context.Context, entries []Entry) error {
	msgs := make([]*nats.Msg, len(entries))
	for i, e := range entries {
		b, err := control.Encode(e.Location)
		if err != nil {
			return err
		}
		// The library's Put has the same subject and header, and no batches.
		msgs[i] = nats.NewMsg("$KV." + t.kv.Bucket() + "." + subject.Encode(e.Owner))
		msgs[i].Data = b
		msgs[i].Header.Set(jetstream.ExpectedLastSubjSeqHeader, strconv.FormatUint(e.Revision, 10))
	}
	last, err := t.client.PublishTogether(ctx, msgs)
	switch {
	case errors.Is(err, bus.ErrConflict):
		return fmt.Errorf("%d locations: %w", len(entries), ErrConflict)
	case errors.Is(err, bus.ErrOneByOne):
		return fmt.Errorf("%d locations: %w", len(entries), ErrSingly)
	case err != nil:
		return fmt.Errorf("%d locations: %w", len(entries), err)
	}
	for i := range entries {
		entries[i].Revision = last - uint64(len(entries)-1-i)
	}
	return nil
}

// List reads the bucket once.
func (t *KV) List(ctx context.Context, fn func(string, control.Location) error) error {
	return t.Entries(ctx, func(e Entry) error { return fn(e.Owner, e.Location) })
}

// Entries reads the bucket once.
func (t *KV) Entries(ctx context.Context, fn func(Entry) error) (err error) {
	w, err := t.kv.WatchAll(ctx, jetstream.IgnoreDeletes())
	if err != nil {
		return fmt.Errorf("list locations: %w", err)
	}
	defer func() { err = errors.Join(err, w.Stop()) }()
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("list locations: %w", ctx.Err())
		case e, open := <-w.Updates():
			if !open {
				return fmt.Errorf("list locations: %w", bus.ErrClosed)
			}
			if e == nil { // that was all
				return nil
			}
			owner, err := subject.Decode(e.Key())
			if err != nil {
				return fmt.Errorf("list locations: %w", err)
			}
			l, err := control.DecodeLocation(e.Value())
			if err != nil {
				return fmt.Errorf("location of %.80q: %w", owner, err)
			}
			if err := fn(Entry{Owner: owner, Location: *l, Revision: e.Revision()}); err != nil {
				return err
			}
		}
	}
}

// Memory is a table that lives and dies with the process: for tests, and for
// trying an import out.
type Memory struct {
	mu       sync.Mutex
	revision uint64
	entries  map[string]memoryEntry
}

type memoryEntry struct {
	l        control.Location
	revision uint64
}

// NewMemory returns an empty table.
func NewMemory() *Memory { return &Memory{entries: map[string]memoryEntry{}} }

// Get reads the entry.
func (t *Memory) Get(_ context.Context, owner string) (control.Location, uint64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.entries[owner]
	return e.l, e.revision, nil
}

// Set writes the entry under its revision.
func (t *Memory) Set(_ context.Context, owner string, l control.Location, revision uint64) (uint64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.entries[owner].revision != revision {
		return 0, fmt.Errorf("location of %.80q: %w", owner, ErrConflict)
	}
	t.revision++
	t.entries[owner] = memoryEntry{l, t.revision}
	return t.revision, nil
}

// SetAll writes the entries under their revisions.
func (t *Memory) SetAll(_ context.Context, entries []Entry) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range entries {
		if t.entries[e.Owner].revision != e.Revision {
			return fmt.Errorf("location of %.80q: %w", e.Owner, ErrConflict)
		}
	}
	for i, e := range entries {
		t.revision++
		t.entries[e.Owner] = memoryEntry{e.Location, t.revision}
		entries[i].Revision = t.revision
	}
	return nil
}

// List calls fn by ascending owner.
func (t *Memory) List(ctx context.Context, fn func(string, control.Location) error) error {
	return t.Entries(ctx, func(e Entry) error { return fn(e.Owner, e.Location) })
}

// Entries calls fn by ascending owner.
func (t *Memory) Entries(_ context.Context, fn func(Entry) error) error {
	t.mu.Lock()
	entries := maps.Clone(t.entries)
	t.mu.Unlock()
	for _, owner := range slices.Sorted(maps.Keys(entries)) {
		if err := fn(Entry{Owner: owner, Location: entries[owner].l, Revision: entries[owner].revision}); err != nil {
			return err
		}
	}
	return nil
}
