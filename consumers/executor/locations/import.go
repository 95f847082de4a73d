package locations

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"penstock/infra/bus"
	"penstock/schemas/control"
)

const (
	// writers is how many entries are written at a time where each is on its own.
	writers = 16
	// few is up to how many rows the table is asked for one by one; for more it is
	// read once.
	few = 500
	// maxBad is how many unusable rows are told one by one.
	maxBad = 100
	// rowTries is how often an entry is looked at again when others write to it.
	rowTries = 5
)

// ImportOptions says how an import is to be read.
type ImportOptions struct {
	// Sites are the sites there are; another one is a fault of the row. Empty
	// allows any.
	Sites []string
	// Now is the time of entries that bring none.
	Now time.Time
	// Overwrite lets an import contradict an entry: it gets the next version.
	// Without it such a row is a conflict, for the data would have to be moved.
	Overwrite bool
	// Strict writes nothing if any row can't be used.
	Strict bool
	// UnderWay reports whether a move of the owner has no outcome yet: where its
	// data is going to be is not known then, and its row is not used. Nil: none.
	UnderWay func(owner string) bool
	// Tell is told of the entries that stand as the import has them, each after it
	// was written, those that said nothing new among them: so the repeat of an
	// import that was cut off tells the rest. Its error ends the import.
	Tell func(ctx context.Context, entries []Entry) error
	// Progress, if set, is called with the rows that are done, of how many.
	Progress func(done, of int)
}

// Bad is a row that was not used.
type Bad struct {
	Line int // from 1
	Err  error
}

// Imported is the account of an import: Rows = Written + Unchanged + Unused.
type Imported struct {
	Rows      int
	Written   int
	Unchanged int
	Unused    int
	Bad       []Bad // the first of the unused, by line
}

func (rep *Imported) unused(line int, err error) {
	rep.Unused++
	if len(rep.Bad) < maxBad {
		rep.Bad = append(rep.Bad, Bad{line, err})
	}
}

// Import writes the entries of a CSV or Parquet file, told apart by its content.
// A row that can't be used is accounted for and skipped, unless Strict: then
// nothing is written and the error wraps ErrRow.
func Import(ctx context.Context, r io.Reader, t Table, o ImportOptions) (rep Imported, err error) {
	rows, closeRows, err := openRows(ctx, r)
	if err != nil {
		return rep, err
	}
	defer func() { err = errors.Join(err, closeRows()) }()
	return ImportRows(ctx, rows, t, o)
}

// ImportRows is Import of rows from anywhere.
func ImportRows(ctx context.Context, in Rows, t Table, o ImportOptions) (Imported, error) {
	x := &importer{t: t, o: &o}
	rows, err := read(in, &o, &x.rep)
	if err != nil {
		return x.rep, err
	}
	if o.Strict && x.rep.Unused > 0 {
		b := x.rep.Bad[0]
		return x.rep, fmt.Errorf("line %d: %w (%d rows in all)", b.Line, b.Err, x.rep.Unused)
	}
	x.bulk, _ = t.(Bulk)
	if err := x.look(ctx, rows); err != nil {
		return x.rep, err
	}
	done := 0
	for chunk := range slices.Chunk(rows, bus.MaxBatch) {
		if err := x.chunk(ctx, chunk); err != nil {
			return x.rep, err
		}
		if done += len(chunk); o.Progress != nil {
			o.Progress(done, len(rows))
		}
	}
	slices.SortFunc(x.rep.Bad, func(a, b Bad) int { return cmp.Compare(a.Line, b.Line) })
	return x.rep, nil
}

// importer writes rows to a table.
type importer struct {
	t     Table
	bulk  Bulk // nil if entries are written one by one
	o     *ImportOptions
	rep   Imported
	known map[string]Entry // what the table had; nil: it was not read
}

// look reads what the table has of the rows' owners, if they are many.
func (x *importer) look(ctx context.Context, rows []row) error {
	if x.bulk == nil || len(rows) <= few {
		return nil
	}
	owners := make(map[string]struct{}, len(rows))
	for i := range rows {
		owners[rows[i].owner] = struct{}{}
	}
	x.known = map[string]Entry{}
	return x.bulk.Entries(ctx, func(e Entry) error {
		if _, wanted := owners[e.Owner]; wanted {
			x.known[e.Owner] = e
		}
		return nil
	})
}

// chunk writes some rows, at once if that can be, and tells of them.
func (x *importer) chunk(ctx context.Context, rows []row) error {
	var stand, change []Entry
	var changed []row
	for i := range rows {
		w := &rows[i]
		now := x.known[w.owner]
		next, news, err := merge(now.Location, now.Revision > 0, w, x.o)
		switch {
		case err != nil:
			x.rep.unused(w.line, err)
		case news:
			change = append(change, Entry{w.owner, next, now.Revision, w.bytes})
			changed = append(changed, *w)
		default:
			x.rep.Unchanged++
			now.Bytes = w.bytes
			stand = append(stand, now)
		}
	}
	err := ErrSingly
	if x.bulk != nil && len(change) > 1 {
		err = x.bulk.SetAll(ctx, change)
	}
	switch {
	case err == nil:
		x.rep.Written += len(change)
		stand = append(stand, change...)
	case errors.Is(err, ErrConflict), errors.Is(err, ErrSingly):
		// Somebody has written one of them since, or the table can't.
		each, err := x.each(ctx, changed)
		if err != nil {
			return err
		}
		stand = append(stand, each...)
	default:
		return err
	}
	if x.o.Tell == nil || len(stand) == 0 {
		return nil
	}
	return x.o.Tell(ctx, stand)
}

// each writes rows one by one, several at a time, and returns what stands.
func (x *importer) each(ctx context.Context, rows []row) ([]Entry, error) {
	var mu sync.Mutex
	var stand []Entry
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i := range rows {
		group.Go(func() error {
			e, wrote, err := x.write(ctx, &rows[i])
			mu.Lock()
			defer mu.Unlock()
			switch {
			case errors.Is(err, ErrRow):
				x.rep.unused(rows[i].line, err)
				return nil
			case err != nil:
				return fmt.Errorf("line %d: %w", rows[i].line, err)
			case wrote:
				x.rep.Written++
			default:
				x.rep.Unchanged++
			}
			stand = append(stand, e)
			return nil
		})
	}
	err := group.Wait()
	return stand, err
}

// write writes one entry, if it says anything new.
func (x *importer) write(ctx context.Context, w *row) (Entry, bool, error) {
	now := x.known[w.owner] // without one: most owners of an import are new
	for range rowTries {
		next, change, err := merge(now.Location, now.Revision > 0, w, x.o)
		if err != nil || !change {
			now.Bytes = w.bytes
			return now, false, err
		}
		revision, err := x.t.Set(ctx, w.owner, next, now.Revision)
		if err == nil {
			return Entry{w.owner, next, revision, w.bytes}, true, nil
		}
		if !errors.Is(err, ErrConflict) {
			return Entry{}, false, err
		}
		now.Owner = w.owner
		if now.Location, now.Revision, err = x.t.Get(ctx, w.owner); err != nil {
			return Entry{}, false, err
		}
	}
	return Entry{}, false, fmt.Errorf("owner %.80q is being moved: %w", w.owner, ErrRow)
}

// merge says what an entry becomes by a row.
func merge(now control.Location, known bool, w *row, o *ImportOptions) (control.Location, bool, error) {
	if !known {
		return w.l, true, nil
	}
	next := now
	if w.hasPinned {
		next.Pinned = w.l.Pinned
	}
	if w.l.Site == now.Site {
		return next, next != now, nil
	}
	if !o.Overwrite {
		return now, false, bad("site", w.l.Site, fmt.Sprintf("%s, where the owner is at version %d", now.Site, now.Version))
	}
	next.Site, next.Since, next.State = w.l.Site, w.l.Since, control.Live
	next.Version = max(now.Version+1, w.l.Version)
	return next, true, nil
}
