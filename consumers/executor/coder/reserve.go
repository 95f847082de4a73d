package coder

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"penstock/consumers/executor/coder/catalog"
	"penstock/consumers/executor/coder/object"
)

// reservation is an intent of the catalog, on disk, for blobs that may be written: the
// version's id and where its blobs would lie.
type reservation struct {
	id     string
	places []object.Place
	states uint64 // of the stores, when they were chosen
}

// reservations are begun ahead, many in one transaction, so that a write waits for one
// transaction only, the one that makes it visible. What they name and nobody wrote is
// deleted like the blobs of any write that a crash has ended.
type reservations struct {
	c  *Coder
	mu sync.Mutex
	// free are those that nobody has taken.
	free    []reservation
	filling bool
}

const (
	// reservedAhead is how many reservations are made at a time; when half of them
	// are taken others are made.
	reservedAhead = 64
	// maxStaged is the most blobs that a write in the shared layout puts.
	maxStaged = 12
)

// take gives a reservation that is of the stores that live now.
func (r *reservations) take(ctx context.Context) (reservation, error) {
	states := r.c.states.Load()
	r.mu.Lock()
	var old []string
	for len(r.free) > 0 {
		last := r.free[len(r.free)-1]
		r.free = r.free[:len(r.free)-1]
		if last.states == states {
			if len(r.free) < reservedAhead/2 && !r.filling {
				r.filling = true
				r.c.start(func() { r.fill(r.c.ctx) })
			}
			r.mu.Unlock()
			r.forget(old)
			return last, nil
		}
		old = append(old, last.id)
	}
	r.mu.Unlock()
	r.forget(old)
	one, err := r.begin(ctx, 1)
	if err != nil {
		return reservation{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.filling {
		r.filling = true
		r.c.start(func() { r.fill(r.c.ctx) })
	}
	return one[0], nil
}

// put gives back one of which nothing was written.
func (r *reservations) put(one reservation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free = append(r.free, one)
}

func (r *reservations) fill(ctx context.Context) {
	made, err := r.begin(ctx, reservedAhead)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.filling = false
	r.free = append(r.free, made...)
	if err != nil && ctx.Err() == nil {
		r.c.log.Warn().Err(err).Msg("no intents ahead") // the next write tries again
	}
}

// close forgets all that nobody took.
func (r *reservations) close() {
	r.mu.Lock()
	var ids []string
	for _, one := range r.free {
		ids = append(ids, one.id)
	}
	r.free = nil
	r.mu.Unlock()
	r.forget(ids)
}

// forget ends intents of which nothing was written.
func (r *reservations) forget(ids []string) {
	if len(ids) == 0 {
		return
	}
	if err := r.c.catalog.Forget(context.WithoutCancel(r.c.ctx), ids...); err != nil && !errors.Is(err, catalog.ErrClosed) {
		r.c.log.Warn().Err(err).Msg("intents of writes that didn't begin stay until the next start")
	}
}

// begin makes reservations.
func (r *reservations) begin(ctx context.Context, n int) ([]reservation, error) {
	states := r.c.states.Load()
	made, intents := make([]reservation, n), make([]catalog.Intent, n)
	for i := range made {
		id := newID()
		made[i] = reservation{id: id, places: r.c.placesOf(id, ""), states: states}
		intents[i] = catalog.Intent{ID: id, Since: r.c.o.Clock.Now(), Places: made[i].places}
	}
	var group errgroup.Group // side by side, they share a transaction
	for _, i := range intents {
		group.Go(func() error { return r.c.catalog.Begin(ctx, i) })
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("begin a write: %w", err) // the next start ends those that were begun
	}
	return made, nil
}

// placesOf is where the blobs of a version may be written; attempt is blobKey's.
func (c *Coder) placesOf(id, attempt string) []object.Place {
	n := maxStaged
	stores := make([]*store, n)
	if c.code.Layout == object.Spread {
		n = c.code.N
		stores = c.pick(turnOf(id), n)
	} else {
		for i := range stores {
			stores[i] = c.stores[0]
		}
	}
	places := make([]object.Place, n)
	for i := range places {
		places[i] = object.Place{Store: stores[i].Name(), Key: c.blobKey(id, i, attempt)}
	}
	return places
}

// blobKey is the key of a blob of a version; attempt tells apart those that are written
// later, when the version is settled or a blob moves.
func (c *Coder) blobKey(id string, blob int, attempt string) string {
	key := c.prefix() + id[:2] + "/" + id + "." + strconv.Itoa(blob)
	if attempt != "" {
		key += "." + attempt
	}
	return key
}

// prefix is what the keys of all blobs begin with.
func (c *Coder) prefix() string { return c.o.Name + "/b/" }

// versionOf is the id in the key of a blob, empty for other keys.
func (c *Coder) versionOf(key string) string {
	rest, ok := strings.CutPrefix(key, c.prefix())
	if !ok {
		return ""
	}
	_, name, ok := strings.Cut(rest, "/")
	if !ok {
		return ""
	}
	id, _, ok := strings.Cut(name, ".")
	if !ok || !isID(id) {
		return ""
	}
	return id
}

var digits = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// newID is 128 random bits as text of letters and digits.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	return digits.EncodeToString(b[:])
}

func isID(s string) bool {
	b, err := digits.DecodeString(s)
	return err == nil && len(b) == 16
}

// turnOf is a number that follows from an id, evenly.
func turnOf(id string) uint64 {
	b, err := digits.DecodeString(id)
	if err != nil || len(b) < 8 {
		return 0
	}
	return binary.BigEndian.Uint64(b)
}
