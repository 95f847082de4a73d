package locations

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"penstock/infra/objectstore"
	"penstock/schemas/control"
)

// columns of the CSV, in the order of an export. An import needs the first two,
// in any order, under these names.
var columns = []string{"owner", "site", "version", "state", "since", "pinned"}

const (
	// writers is how many entries are written at a time.
	writers = 16
	// maxBad is how many unusable rows are told one by one.
	maxBad = 100
	// rowTries is how often an entry is looked at again when others write to it.
	rowTries = 5
)

// Export writes all entries as CSV, ascending by owner (bytes), and returns how
// many.
func Export(ctx context.Context, w io.Writer, t Table) (int, error) {
	type entry struct {
		owner string
		control.Location
	}
	var all []entry
	err := t.List(ctx, func(owner string, l control.Location) error {
		all = append(all, entry{owner, l})
		return nil
	})
	if err != nil {
		return 0, err
	}
	slices.SortFunc(all, func(a, b entry) int { return cmp.Compare(a.owner, b.owner) })
	out := csv.NewWriter(w)
	if err := out.Write(columns); err != nil {
		return 0, fmt.Errorf("export locations: %w", err)
	}
	for _, e := range all {
		row := []string{
			e.owner, e.Site, strconv.FormatUint(e.Version, 10), string(e.State),
			e.Since.UTC().Format(time.RFC3339Nano), strconv.FormatBool(e.Pinned),
		}
		if err := out.Write(row); err != nil {
			return 0, fmt.Errorf("export locations: %w", err)
		}
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return 0, fmt.Errorf("export locations: %w", err)
	}
	return len(all), nil
}

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

// row is a usable row.
type row struct {
	line      int
	owner     string
	l         control.Location
	hasPinned bool
}

// Import writes the entries of a CSV. A row that can't be used is accounted for
// and skipped, unless Strict: then nothing is written and the error wraps ErrRow.
func Import(ctx context.Context, r io.Reader, t Table, o ImportOptions) (Imported, error) {
	var rep Imported
	rows, err := read(r, o, &rep)
	if err != nil {
		return rep, err
	}
	if o.Strict && rep.Unused > 0 {
		b := rep.Bad[0]
		return rep, fmt.Errorf("line %d: %w (%d rows in all)", b.Line, b.Err, rep.Unused)
	}
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i := range rows {
		group.Go(func() error {
			wrote, err := write(ctx, t, &rows[i], o)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case errors.Is(err, ErrRow):
				rep.unused(rows[i].line, err)
			case err != nil:
				return fmt.Errorf("line %d: %w", rows[i].line, err)
			case wrote:
				rep.Written++
			default:
				rep.Unchanged++
			}
			return nil
		})
	}
	err = group.Wait()
	slices.SortFunc(rep.Bad, func(a, b Bad) int { return cmp.Compare(a.Line, b.Line) })
	return rep, err
}

func (rep *Imported) unused(line int, err error) {
	rep.Unused++
	if len(rep.Bad) < maxBad {
		rep.Bad = append(rep.Bad, Bad{line, err})
	}
}

// read reads and checks all rows.
func read(r io.Reader, o ImportOptions, rep *Imported) ([]row, error) {
	in := csv.NewReader(r)
	in.FieldsPerRecord = -1
	head, err := in.Read()
	if err != nil {
		return nil, fmt.Errorf("import locations: the first line must name the columns %s: %w", strings.Join(columns, ","), err)
	}
	at, err := columnsOf(head)
	if err != nil {
		return nil, err
	}
	var rows []row
	seen := map[string]int{}
	for {
		fields, err := in.Read()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		rep.Rows++
		var parse *csv.ParseError
		if errors.As(err, &parse) {
			rep.unused(parse.StartLine, fmt.Errorf("%w: %w", ErrRow, err))
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("import locations: %w", err)
		}
		line, _ := in.FieldPos(0)
		w, err := parseRow(fields, at, len(head), o)
		if first, twice := seen[w.owner]; err == nil && twice {
			err = bad("owner", w.owner, fmt.Sprintf("each once; it is on line %d too", first))
		}
		if err != nil {
			rep.unused(line, err)
			continue
		}
		w.line = line
		seen[w.owner] = line
		rows = append(rows, w)
	}
}

// columnsOf returns the place of each known column.
func columnsOf(head []string) (map[string]int, error) {
	at := map[string]int{}
	for i, name := range head {
		name = strings.TrimPrefix(strings.TrimSpace(name), "\ufeff")
		if !slices.Contains(columns, name) {
			return nil, fmt.Errorf("line 1: %w", bad("column", name, strings.Join(columns, ", ")))
		}
		if _, twice := at[name]; twice {
			return nil, fmt.Errorf("line 1: %w", bad("column", name, "each once"))
		}
		at[name] = i
	}
	for _, name := range columns[:2] {
		if _, ok := at[name]; !ok {
			return nil, fmt.Errorf("line 1: %w", bad("column", "", name))
		}
	}
	return at, nil
}

func bad(field, got, expected string) error {
	return fmt.Errorf("field %s: got %.80q, expected %s: %w", field, got, expected, ErrRow)
}

func parseRow(fields []string, at map[string]int, n int, o ImportOptions) (row, error) {
	if len(fields) != n {
		return row{}, fmt.Errorf("%d fields, expected %d: %w", len(fields), n, ErrRow)
	}
	get := func(name string) string {
		if i, ok := at[name]; ok {
			return fields[i]
		}
		return ""
	}
	w := row{owner: get("owner"), l: control.Location{Site: get("site"), State: control.Live, Since: o.Now.UTC()}}
	if w.owner == "" || len(w.owner) > objectstore.MaxOwner {
		return w, bad("owner", w.owner, fmt.Sprintf("1 to %d bytes", objectstore.MaxOwner))
	}
	if !utf8.ValidString(w.owner) {
		return w, bad("owner", w.owner, "UTF-8, as in requests")
	}
	if w.l.Site == "" || len(o.Sites) > 0 && !slices.Contains(o.Sites, w.l.Site) {
		return w, bad("site", w.l.Site, "one of "+strings.Join(o.Sites, ", "))
	}
	var err error
	if s := get("version"); s != "" {
		if w.l.Version, err = strconv.ParseUint(s, 10, 64); err != nil {
			return w, bad("version", s, "a number from 0")
		}
	}
	if s := get("state"); s != "" && s != string(control.Live) {
		return w, bad("state", s, "live: an entry names the live copy")
	}
	if s := get("since"); s != "" {
		if w.l.Since, err = time.Parse(time.RFC3339Nano, s); err != nil {
			return w, bad("since", s, "a time such as 2015-05-17T10:00:00Z")
		}
		w.l.Since = w.l.Since.UTC()
	}
	if s := get("pinned"); s != "" {
		if w.l.Pinned, err = strconv.ParseBool(s); err != nil {
			return w, bad("pinned", s, "true or false")
		}
		w.hasPinned = true
	}
	return w, nil
}

// write writes one entry, if it says anything new.
func write(ctx context.Context, t Table, w *row, o ImportOptions) (bool, error) {
	var now control.Location
	var revision uint64 // most owners of an import are new
	for range rowTries {
		next, change, err := merge(now, revision > 0, w, o)
		if err != nil || !change {
			return false, err
		}
		_, err = t.Set(ctx, w.owner, next, revision)
		if err == nil {
			return true, nil
		}
		if !errors.Is(err, ErrConflict) {
			return false, err
		}
		if now, revision, err = t.Get(ctx, w.owner); err != nil {
			return false, err
		}
	}
	return false, fmt.Errorf("owner %.80q is being moved: %w", w.owner, ErrRow)
}

// merge says what an entry becomes by a row.
func merge(now control.Location, known bool, w *row, o ImportOptions) (control.Location, bool, error) {
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
