package writes

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"penstock/infra/clock"
	"penstock/infra/objectstore"
)

// Store is a site's store as the ledger needs it.
type Store interface {
	objectstore.Store
	objectstore.Records
}

// Locator says where owners are; *route.Table is one.
type Locator interface {
	// Owner returns the name of an owner, the index of the site where its data
	// is, negative if that is unknown, and the version of its location.
	Owner(o int32) (name string, site int, version uint64)
	// Apply is told that the data was found at another site.
	Apply(owner, to string, version uint64) bool
}

// Site is a site with its store.
type Site struct {
	Name  string
	Store Store
}

// Options of a ledger.
type Options struct {
	// Dir is the state folder, in which written.json stands.
	Dir string
	// Locator is asked for each owner at the end of a window.
	Locator Locator
	// Sites by the index that the locator means.
	Sites []Site
	// Workers write at once. Defaults to 4.
	Workers int
	// Clock paces the waiting for a copy that is on its way. Defaults to the machine's:
	// movers don't go by the clock of a replay.
	Clock clock.Clock
}

const (
	// arrivesWithin is how long a copy that is on its way is waited for.
	arrivesWithin = time.Minute
	// lookAgain is how long before it is looked at again.
	lookAgain = 5 * time.Millisecond
)

// Ledger buffers the writes of the current window, and knows what each owner's
// data must be. It is not safe for concurrent use.
type Ledger struct {
	opts    Options
	bySite  map[string]int
	written int64 // end of the last window that is marked
	owners  []account
	buffer  []write
	touched []int32
	stats   Stats
}

// Stats counts what has passed through a ledger.
type Stats struct {
	Writes int64 // of owners whose site is known
	Bytes  int64
	// Unplaced are writes of owners of which no site was known at the end of
	// the window: they are in no store.
	Unplaced int64
	// Followed are owners that had moved on when they were written to.
	Followed int64
}

// account is what an owner's data must be: its records by count and sizes.
type account struct {
	records uint64
	chain   uint64
	first   int32 // of its writes in the buffer, −1 for none
	last    int32
	there   bool // an object has been made
}

type write struct {
	size int64
	next int32 // of the same owner, −1 at the end
}

// Open returns an empty ledger that goes on after the marker in the folder. The
// folder must be there. ErrMarker.
func Open(o Options) (*Ledger, error) {
	if o.Workers <= 0 {
		o.Workers = 4
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	written, err := readMarker(o.Dir)
	if err != nil {
		return nil, err
	}
	l := &Ledger{opts: o, written: written, bySite: map[string]int{}}
	for i, s := range o.Sites {
		l.bySite[s.Name] = i
	}
	return l, nil
}

// Add buffers a write of an owner.
func (l *Ledger) Add(o int32, size int64) {
	a := l.account(o)
	i := int32(len(l.buffer))
	l.buffer = append(l.buffer, write{size, -1})
	if a.first < 0 {
		a.first = i
		l.touched = append(l.touched, o)
	} else {
		l.buffer[a.last].next = i
	}
	a.last = i
}

// Touch makes sure that an owner has an object at the end of the window, be it
// an empty one.
func (l *Ledger) Touch(o int32) {
	if a := l.account(o); a.first < 0 && !a.there {
		l.touched = append(l.touched, o)
	}
}

func (l *Ledger) account(o int32) *account {
	for int(o) >= len(l.owners) {
		l.owners = append(l.owners, account{first: -1, last: -1})
	}
	return &l.owners[o]
}

// Flush ends the window that ends at end (µs): its writes go to the stores, then
// the marker names it. A window up to the marker is only counted; one without
// writes and new owners needs no marker.
func (l *Ledger) Flush(ctx context.Context, end int64) error {
	again := end <= l.written || len(l.touched) == 0
	var (
		mu    sync.Mutex
		moved []found
	)
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(l.opts.Workers)
	for _, o := range l.touched {
		job, ok := l.take(o)
		if !ok || again {
			continue
		}
		g.Go(func() error {
			f, err := l.append(gctx, job)
			if err == nil && f.hops > 0 {
				mu.Lock()
				defer mu.Unlock()
				moved = append(moved, f)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("write to the stores: %w", err)
	}
	l.touched, l.buffer = l.touched[:0], l.buffer[:0]
	for _, f := range moved {
		l.stats.Followed++
		l.opts.Locator.Apply(f.owner, l.opts.Sites[f.site].Name, f.version)
	}
	if again {
		return nil
	}
	if err := writeMarker(l.opts.Dir, end); err != nil {
		return err
	}
	l.written = end
	return nil
}

// job is an owner's writes of a window, on their way.
type job struct {
	owner string
	site  int
	first uint64 // number of the first record
	sizes []int64
}

// take empties an owner's buffer into its account and returns what is to be
// written; ok is false if it has no site.
func (l *Ledger) take(o int32) (job, bool) {
	a := l.account(o)
	name, site, _ := l.opts.Locator.Owner(o)
	j := job{owner: name, site: site, first: a.records + 1}
	for i := a.first; i >= 0; i = l.buffer[i].next {
		if site < 0 {
			l.stats.Unplaced++
			continue
		}
		size := l.buffer[i].size
		l.stats.Writes++
		l.stats.Bytes += size
		for {
			part := min(size, MaxRecord)
			j.sizes = append(j.sizes, part)
			a.records++
			a.chain = link(a.chain, part)
			if size -= part; size <= 0 {
				break
			}
		}
	}
	a.first, a.last = -1, -1
	if site < 0 {
		return j, false
	}
	a.there = true
	return j, true
}

// found says where an owner's data was after all.
type found struct {
	owner   string
	site    int
	version uint64
	hops    int
}

// chunk is how many bytes of an owner go to its store at once.
const chunk = 4 << 20

// append writes an owner's records, and follows the data if it has moved on.
func (l *Ledger) append(ctx context.Context, j job) (found, error) {
	at := found{owner: j.owner, site: j.site}
	buf := make([]byte, 0, min(total(j.sizes), chunk+MaxRecord))
	var records []objectstore.Record
	for n := 0; ; {
		buf, records = buf[:0], records[:0]
		for n < len(j.sizes) && len(buf) < chunk {
			number, from := j.first+uint64(n), len(buf)
			buf = buf[:from+int(j.sizes[n])]
			Fill(buf[from:], j.owner, number)
			records = append(records, objectstore.Record{Number: number, Payload: buf[from:]})
			n++
		}
		if err := l.appendAt(ctx, &at, records); err != nil {
			return at, err
		}
		if n == len(j.sizes) {
			return at, nil
		}
	}
}

func (l *Ledger) appendAt(ctx context.Context, at *found, records []objectstore.Record) error {
	first, began := *at, l.opts.Clock.Now()
	for {
		_, err := l.opts.Sites[at.site].Store.AppendAll(ctx, at.owner, File, records)
		var marked *objectstore.MarkedError
		if err == nil || !errors.As(err, &marked) {
			return err
		}
		// The mover has closed the source, and not opened this one yet. The source knows
		// should it be opened again instead.
		if marked.Have.State == objectstore.Incoming && l.opts.Clock.Now().Sub(began) < arrivesWithin {
			if err := l.opts.Clock.Sleep(ctx, lookAgain); err != nil {
				return fmt.Errorf("owner %.80q is on its way: %w", at.owner, err)
			}
			*at = first
			continue
		}
		next, ok := l.bySite[marked.Have.Site]
		// A retired copy names where the data went; newer moves have greater
		// versions, so that no circle is followed for ever.
		if !ok || marked.Have.State != objectstore.Retired || at.hops > 0 && marked.Have.Version <= at.version {
			return fmt.Errorf("%w: %w", ErrUnreachable, err)
		}
		at.site, at.version = next, marked.Have.Version
		at.hops++
	}
}

func total(sizes []int64) int64 {
	var sum int64
	for _, s := range sizes {
		sum += s
	}
	return sum
}

// Stats returns what has passed so far; writes in the buffer are not in it.
func (l *Ledger) Stats() Stats { return l.stats }
