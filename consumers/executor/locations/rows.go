package locations

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"penstock/infra/objectstore"
	"penstock/schemas/control"
)

// columns of an import, in any order, under these names; it needs the first two.
// How much is stored of an owner is not known here, so an export has no bytes.
var (
	columns  = []string{"owner", "site", "version", "state", "since", "pinned", "bytes"}
	exported = columns[:6]
)

// Rows yields the rows of an import, one after another.
type Rows interface {
	// Next returns the next row and its line, from 1. An error that wraps ErrRow
	// is of that row alone, and reading goes on; io.EOF is the end; any other
	// error ends the import.
	Next() (Row, int, error)
}

// Row is what an import says of an owner.
type Row struct {
	Owner     string
	Site      string
	Version   uint64
	Since     time.Time // zero: none was given
	Pinned    bool
	HasPinned bool
	Bytes     int64 // stored of the owner at least; 0: not said
}

// RowsOf yields the given rows.
func RowsOf(rows ...Row) Rows { return &listed{rows: rows} }

type listed struct {
	rows []Row
	at   int
}

// Next returns the next of the list.
func (l *listed) Next() (Row, int, error) {
	if l.at == len(l.rows) {
		return Row{}, 0, io.EOF
	}
	l.at++
	return l.rows[l.at-1], l.at, nil
}

// row is a usable row.
type row struct {
	line      int
	owner     string
	l         control.Location
	hasPinned bool
	bytes     int64
}

// read reads and checks all rows: each owner once, at a site that there is.
func read(in Rows, o *ImportOptions, rep *Imported) ([]row, error) {
	var rows []row
	seen := map[string]int{}
	for {
		r, line, err := in.Next()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil && !errors.Is(err, ErrRow) {
			return nil, fmt.Errorf("import locations: %w", err)
		}
		rep.Rows++
		if err == nil {
			err = check(&r, o)
		}
		if first, twice := seen[r.Owner]; err == nil && twice {
			err = bad("owner", r.Owner, fmt.Sprintf("each once; it is on line %d too", first))
		}
		if err != nil {
			rep.unused(line, err)
			continue
		}
		seen[r.Owner] = line
		w := row{line: line, owner: r.Owner, hasPinned: r.HasPinned, bytes: r.Bytes, l: control.Location{
			Site: r.Site, Version: r.Version, State: control.Live, Since: r.Since.UTC(), Pinned: r.Pinned,
		}}
		if r.Since.IsZero() {
			w.l.Since = o.Now.UTC()
		}
		rows = append(rows, w)
	}
}

func check(r *Row, o *ImportOptions) error {
	switch {
	case r.Owner == "" || len(r.Owner) > objectstore.MaxOwner:
		return bad("owner", r.Owner, fmt.Sprintf("1 to %d bytes", objectstore.MaxOwner))
	case !utf8.ValidString(r.Owner):
		return bad("owner", r.Owner, "UTF-8, as in requests")
	case r.Site == "" || len(o.Sites) > 0 && !slices.Contains(o.Sites, r.Site):
		return bad("site", r.Site, "one of "+strings.Join(o.Sites, ", "))
	case r.Bytes < 0:
		return bad("bytes", strconv.FormatInt(r.Bytes, 10), "0 or more")
	case o.UnderWay != nil && o.UnderWay(r.Owner):
		return fmt.Errorf("owner %.80q: a move of it has no outcome yet, import it again when it has: %w", r.Owner, ErrRow)
	}
	return nil
}

func bad(field, got, expected string) error {
	return fmt.Errorf("field %s: got %.80q, expected %s: %w", field, got, expected, ErrRow)
}

// columnsOf says where each column is.
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

// parseRow reads the text of a row's fields; get returns that of a column, empty
// where it is missing.
func parseRow(get func(column string) string) (r Row, err error) {
	r = Row{Owner: get("owner"), Site: get("site")}
	if s := get("version"); s != "" {
		if r.Version, err = strconv.ParseUint(s, 10, 64); err != nil {
			return r, bad("version", s, "a number from 0")
		}
	}
	if s := get("state"); s != "" && s != string(control.Live) {
		return r, bad("state", s, "live: an entry names the live copy")
	}
	if s := get("since"); s != "" {
		if r.Since, err = time.Parse(time.RFC3339Nano, s); err != nil {
			return r, bad("since", s, "a time such as 2015-05-17T10:00:00Z")
		}
	}
	if s := get("pinned"); s != "" {
		if r.Pinned, err = strconv.ParseBool(s); err != nil {
			return r, bad("pinned", s, "true or false")
		}
		r.HasPinned = true
	}
	if s := get("bytes"); s != "" {
		if r.Bytes, err = strconv.ParseInt(s, 10, 64); err != nil {
			return r, bad("bytes", s, "a number of bytes from 0")
		}
	}
	return r, nil
}
