package writes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"penstock/infra/objectstore"
)

// Fault is one thing that Verify found wrong.
type Fault struct {
	Owner string `json:"owner"`
	Site  string `json:"site"`
	What  string `json:"what"`
}

// maxFaults is how many faults a report names.
const maxFaults = 100

// VerifyReport is what the stores hold against what was written.
type VerifyReport struct {
	Owners  int64 `json:"owners"`  // with exactly one live copy of the right content
	Records int64 `json:"records"` // in those copies
	Bytes   int64 `json:"bytes"`   // of the records' payloads
	// Retired are copies that were moved away and are not deleted yet.
	Retired int64 `json:"retired"`
	// Count is the number of faults; Faults are the first of them, by owner.
	Count  int64   `json:"faults"`
	Faults []Fault `json:"first_faults,omitempty"`
}

// OK reports whether nothing is wrong.
func (r *VerifyReport) OK() bool { return r.Count == 0 }

// Verify reads all that is in the stores. Each owner must have exactly one copy
// that may be written to, at the site where the locator says it is, with the
// records that were written and no other; and no store may hold a live copy of
// anybody else. The error is a store's; what is wrong is in the report.
func (l *Ledger) Verify(ctx context.Context) (VerifyReport, error) {
	v := &verifier{l: l, known: map[string]int32{}}
	for o := range l.owners {
		if l.owners[o].there {
			name, _, _ := l.opts.Locator.Owner(int32(o))
			v.known[name] = int32(o)
		}
	}
	v.live = make([]bool, len(l.owners))
	for i := range l.opts.Sites {
		if err := v.store(ctx, i); err != nil {
			return VerifyReport{}, fmt.Errorf("verify %s: %w", l.opts.Sites[i].Name, err)
		}
	}
	for name, o := range v.known {
		if !v.live[o] {
			_, site, _ := l.opts.Locator.Owner(o)
			v.fault(name, site, "no live copy where it should be")
		}
	}
	slices.SortFunc(v.report.Faults, func(a, b Fault) int {
		return strings.Compare(a.Owner+"\x00"+a.Site+"\x00"+a.What, b.Owner+"\x00"+b.Site+"\x00"+b.What)
	})
	v.report.Faults = v.report.Faults[:min(len(v.report.Faults), maxFaults)]
	return v.report, nil
}

type verifier struct {
	l     *Ledger
	known map[string]int32
	live  []bool

	mu     sync.Mutex
	report VerifyReport
}

func (v *verifier) fault(owner string, site int, what string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.report.Count++
	name := ""
	if site >= 0 {
		name = v.l.opts.Sites[site].Name
	}
	v.report.Faults = append(v.report.Faults, Fault{owner, name, what})
}

// store looks at every copy of a site's store.
func (v *verifier) store(ctx context.Context, site int) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(v.l.opts.Workers)
	err := v.l.opts.Sites[site].Store.Owners(gctx, func(owner string, m objectstore.Mark) error {
		g.Go(func() error { return v.copy(gctx, site, owner, m) })
		return nil
	})
	return errors.Join(err, g.Wait())
}

func (v *verifier) copy(ctx context.Context, site int, owner string, m objectstore.Mark) error {
	o, ok := v.known[owner]
	switch {
	case m.State == objectstore.Retired:
		v.mu.Lock()
		v.report.Retired++
		v.mu.Unlock()
		return nil
	case !m.Writable():
		v.fault(owner, site, "a copy that is "+m.String())
		return nil
	case !ok:
		v.fault(owner, site, "a copy of an owner that the replay never saw")
		return nil
	}
	if _, at, _ := v.l.opts.Locator.Owner(o); at != site {
		v.fault(owner, site, "a live copy beside the one that the location names")
		return nil
	}
	v.mu.Lock()
	v.live[o] = true
	v.mu.Unlock()
	return v.content(ctx, site, owner, o)
}

// content compares the records of the live copy with the account.
func (v *verifier) content(ctx context.Context, site int, owner string, o int32) error {
	var got account
	var bytes int64
	what := ""
	err := v.l.opts.Sites[site].Store.Scan(ctx, owner, File, func(number uint64, payload []byte) error {
		got.records++
		got.chain = link(got.chain, int64(len(payload)))
		bytes += int64(len(payload))
		switch {
		case what != "":
		case number != got.records:
			what = fmt.Sprintf("record %d follows record %d", number, got.records-1)
		case !matches(payload, owner, number):
			what = fmt.Sprintf("record %d holds other bytes than were written", number)
		}
		return nil
	})
	want := &v.l.owners[o]
	switch {
	case errors.Is(err, objectstore.ErrNoObject), errors.Is(err, objectstore.ErrNoOwner),
		errors.Is(err, objectstore.ErrCorrupt), errors.Is(err, objectstore.ErrTorn):
		what = err.Error()
	case err != nil:
		return err
	case what != "":
	case got.records != want.records:
		what = fmt.Sprintf("%d records, %d were written", got.records, want.records)
	case got.chain != want.chain:
		what = "records of other sizes than were written"
	}
	if what != "" {
		v.fault(owner, site, what)
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.report.Owners++
	v.report.Records += int64(got.records)
	v.report.Bytes += bytes
	return nil
}
