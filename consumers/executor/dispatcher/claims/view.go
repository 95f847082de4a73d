package claims

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"penstock/infra/bus"
	"penstock/infra/clock"
)

// freshFor is how old figures may be to be used (DESIGN §4.3).
const freshFor = 3 * time.Second

// Row is what one dispatcher has said.
type Row struct {
	Name string
	// Instance tells processes of one name apart.
	Instance string
	// Age of the figures.
	Age time.Duration
	// Epoch of its table in force, 0 for the configured default.
	Epoch uint64
	// Servers by name; one where it has and claims nothing is left out.
	Servers map[string]Figures
}

// View is the key of a site.
type View struct {
	// Rows of dispatchers that are taken to live, in the order of names.
	Rows []Row
	// Settled says that a dispatcher that lives and reaches the bus has a row. It is false
	// without a key, and for a few seconds after it was made, which is so after the bus was
	// restarted, or was written again after a gap.
	Settled bool
}

// Drained reports whether a server has no request in service, of any dispatcher, and will get
// none by a table before epoch: all say so, and not longer ago than 3 s. Otherwise detail
// says what is waited for. Without any dispatcher it is not known: one that is cut off from
// the bus may have requests there. Such a one beside others is taken for dead after 5 s.
func (v *View) Drained(server string, epoch uint64) (drained bool, detail string) {
	if !v.Settled {
		return false, "the dispatchers are not all known yet"
	}
	if len(v.Rows) == 0 {
		return false, "no dispatcher is known"
	}
	for i := range v.Rows {
		r := &v.Rows[i]
		switch f := r.Servers[server]; {
		case r.Age > freshFor:
			return false, fmt.Sprintf("dispatcher %s said nothing for %.1f s", r.Name, r.Age.Seconds())
		case r.Epoch < epoch:
			return false, fmt.Sprintf("dispatcher %s is at epoch %d", r.Name, r.Epoch)
		case f.InService > 0:
			return false, fmt.Sprintf("dispatcher %s has %d in service", r.Name, f.InService)
		}
	}
	return true, ""
}

// view makes rows of what was read; ages are as of the revision's own time.
func view(r *revision, rows []row) View {
	v := View{Rows: make([]Row, 0, len(rows)), Settled: r.number != 0 && r.at-r.Born >= int64(settledAfter)}
	for _, d := range rows {
		v.Rows = append(v.Rows, Row{Name: d.Name, Instance: d.Instance, Age: time.Duration(r.at - d.At), Epoch: d.Epoch, Servers: d.Servers})
	}
	return v
}

// settledAfter is the age of a key in which all dispatchers have written that reach the bus.
const settledAfter = 3 * time.Second

// Viewer reads the key of a site for who doesn't claim: the server switch, status. It is safe
// for concurrent use.
type Viewer struct {
	store store
	clock clock.Clock

	mu     sync.Mutex
	number uint64 // of the revision that was read last
	at     int64  // when it was written
	since  time.Time
	looked bool
}

// NewViewer returns a viewer. A nil clock is the machine's. The error wraps ErrOptions.
func NewViewer(client *bus.Client, c clock.Clock, site string) (*Viewer, error) {
	if client == nil || site == "" {
		return nil, fmt.Errorf("expected a client and a site: %w", ErrOptions)
	}
	if c == nil {
		c = clock.System()
	}
	return &Viewer{store: &kvStore{client: client, key: key(site)}, clock: c}, nil
}

// Look reads the key. Ages count on from the first look at a revision, so that they grow
// while nobody writes, and rows older than 5 s are left out. Without a key there are none.
// After an error nothing is known.
func (w *Viewer) Look(ctx context.Context) (View, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r, err := w.store.read(ctx)
	if errors.Is(err, errBook) {
		return View{}, err
	}
	if err != nil {
		w.looked = false // there may have been other revisions meanwhile
		return View{}, err
	}
	now := w.clock.Now()
	if !w.looked || w.number != r.number || w.at != r.at {
		w.looked, w.number, w.at, w.since = true, r.number, r.at, now
	}
	passed := now.Sub(w.since)
	v := view(&r, r.Dispatchers)
	rows := v.Rows[:0]
	for _, row := range v.Rows {
		if row.Age += passed; row.Age <= ttl {
			rows = append(rows, row)
		}
	}
	v.Rows = rows
	return v, nil
}

// View is what this dispatcher last read of the others, with the ages of now. It is not
// settled before the first round, and while the bus is away.
func (c *Claims) View() View {
	c.mu.Lock()
	defer c.mu.Unlock()
	passed := c.o.Clock.Now().Sub(c.seenAt)
	v := View{Rows: make([]Row, len(c.seen.Rows)), Settled: c.seen.Settled && !c.away}
	for i, r := range c.seen.Rows {
		r.Age += passed
		v.Rows[i] = r
	}
	return v
}
