package postgres

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// difference reads rows that are sent, and rows that are here, both in the order
// of the key, and yields what differs, as COPY takes it up: a row that is new or
// other with f in the last column, one that is gone with t. Nothing but the rows
// it looks at is in memory.
type difference struct {
	sent, here lines
	key        []keyColumn
	out        bytes.Buffer
	last       []byte // of what was sent, to see that it ascends
}

// keyColumn is a column of the key: where it stands, and how it is sorted.
type keyColumn struct {
	at     int
	number bool
}

func newDifference(t *table, columns []column, sent, here io.Reader) *difference {
	d := &difference{sent: newLines(sent), here: newLines(here)}
	for _, k := range t.key {
		at := slices.IndexFunc(columns, func(c column) bool { return c.name == k.name })
		d.key = append(d.key, keyColumn{at, slices.Contains(numbers, k.kind)})
	}
	return d
}

// Read yields differences. It ends when both sides have.
func (d *difference) Read(b []byte) (int, error) {
	for d.out.Len() == 0 {
		if err := d.step(); err != nil {
			return 0, err
		}
	}
	return d.out.Read(b)
}

// step looks at the next row of one side or both; io.EOF after the last.
func (d *difference) step() error {
	sent, err := d.sent.peek()
	if err != nil {
		return err
	}
	here, err := d.here.peek()
	if err != nil {
		return err
	}
	var order int
	switch {
	case sent == nil && here == nil:
		return io.EOF
	case sent == nil:
		order = 1
	case here == nil:
		order = -1
	case !bytes.Equal(sent, here):
		if order, err = d.compare(sent, here); err != nil {
			return err
		}
	default:
		d.here.next()
		return d.ascend(sent)
	}
	if order > 0 {
		d.emit(here, "\tt\n")
		d.here.next()
		return nil
	}
	d.emit(sent, "\tf\n")
	if order == 0 {
		d.here.next()
	}
	return d.ascend(sent)
}

func (d *difference) emit(line []byte, flag string) {
	d.out.Write(line)
	d.out.WriteString(flag)
}

// ascend goes on to the next row that is sent, which must be above this one: else
// rows would be taken for gone that come later.
func (d *difference) ascend(line []byte) error {
	d.last = append(d.last[:0], line...)
	d.sent.next()
	next, err := d.sent.peek()
	if err != nil || next == nil {
		return err
	}
	order, err := d.compare(d.last, next)
	if err == nil && order >= 0 {
		err = fmt.Errorf("%w: they don't ascend by key", ErrRows)
	}
	return err
}

// compare orders two rows by key.
func (d *difference) compare(a, b []byte) (int, error) {
	for _, k := range d.key {
		x, okA := field(a, k.at)
		y, okB := field(b, k.at)
		if !okA || !okB {
			return 0, fmt.Errorf("%w: too few columns", ErrRows)
		}
		var order int
		if k.number {
			m, errA := strconv.ParseInt(string(x), 10, 64)
			n, errB := strconv.ParseInt(string(y), 10, 64)
			if errA != nil || errB != nil {
				return 0, fmt.Errorf("%w: a key is no number", ErrRows)
			}
			order = cmp.Compare(m, n)
		} else {
			order = bytes.Compare(plain(x), plain(y))
		}
		if order != 0 {
			return order, nil
		}
	}
	return 0, nil
}

// field is the i-th value of a row.
func field(line []byte, i int) ([]byte, bool) {
	for ; i > 0; i-- {
		tab := bytes.IndexByte(line, '\t')
		if tab < 0 {
			return nil, false
		}
		line = line[tab+1:]
	}
	if tab := bytes.IndexByte(line, '\t'); tab >= 0 {
		line = line[:tab]
	}
	return line, true
}

// plain takes the escapes out of a value.
func plain(value []byte) []byte {
	if bytes.IndexByte(value, '\\') < 0 {
		return value
	}
	return []byte(unescape.Replace(string(value)))
}

// lines reads rows, without their ends.
type lines struct {
	b    *bufio.Reader
	line []byte
	have bool
}

func newLines(r io.Reader) lines { return lines{b: bufio.NewReaderSize(r, 64<<10)} }

// peek returns the next row, valid until next; nil after the last.
func (l *lines) peek() ([]byte, error) {
	if l.have {
		return l.line, nil
	}
	l.line = l.line[:0]
	for {
		piece, err := l.b.ReadSlice('\n')
		l.line = append(l.line, piece...)
		switch {
		case err == nil:
			l.line = l.line[:len(l.line)-1]
			l.have = true
			return l.line, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case err == io.EOF && len(l.line) == 0:
			return nil, nil
		case err == io.EOF:
			return nil, fmt.Errorf("%w: the last one breaks off", ErrRows)
		default:
			return nil, err
		}
	}
}

func (l *lines) next() { l.have = false }

// stageDifference takes up what differs between the rows that are sent and those
// that are here, and returns the version of the latter: the difference is worth
// something while they are at it.
func (s *Store) stageDifference(ctx context.Context, tx pgx.Tx, t *table, owner string, columns []column, sent io.Reader) (version string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	in, out := io.Pipe()
	read := make(chan error, 1)
	versions := make(chan string, 1)
	go func() {
		err := s.reading(ctx, func(tx pgx.Tx) error {
			v, err := s.versionOf(ctx, tx, t, owner)
			if err != nil {
				return err
			}
			versions <- v
			return t.copyOut(ctx, tx, columns, owner, out)
		})
		_ = out.CloseWithError(err)
		read <- err
	}()
	d := newDifference(t, columns, sent, in)
	err = s.copyIn(ctx, tx, t, d, list(columns, column.ident)+", penstock_gone")
	_ = in.Close()
	if err != nil {
		cancel()
		<-read //nolint:errcheck // The copying has failed before it.
		return "", err
	}
	if err := <-read; err != nil {
		return "", fmt.Errorf("read what is here of %s: %w", t.label, err)
	}
	return <-versions, nil
}

// copyOut writes an owner's rows.
func (t *table) copyOut(ctx context.Context, tx pgx.Tx, columns []column, owner string, w io.Writer) error {
	// The server sends a message for each row.
	b := bufio.NewWriterSize(w, 64<<10)
	_, err := tx.Conn().PgConn().CopyTo(ctx, b, fmt.Sprintf("COPY (SELECT %s FROM %s t WHERE %s ORDER BY %s) TO STDOUT",
		list(columns, func(c column) string { return "t." + c.ident() }), t.ident, t.of(owner, "t."), list(t.key, column.sorted)))
	if err == nil {
		err = b.Flush()
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", t.label, err)
	}
	return nil
}

// copyIn takes rows up in the stage.
func (s *Store) copyIn(ctx context.Context, tx pgx.Tx, t *table, r io.Reader, columns string) error {
	in := &arrival{r: r}
	_, err := tx.Conn().PgConn().CopyFrom(ctx, in, fmt.Sprintf("COPY %s (%s) FROM STDIN", stage, columns))
	if in.err != nil {
		err = in.err // what the server says of it is less
	}
	if strings.HasPrefix(code(err), "22") {
		err = fmt.Errorf("%w: %w", ErrRows, err)
	}
	if err != nil {
		return fmt.Errorf("stage rows of %s: %w", t.label, err)
	}
	return nil
}
