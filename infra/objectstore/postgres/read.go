package postgres

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"penstock/infra/objectstore"
)

// magic begins rows as they are sent.
const magic = "penstock rows 1"

// header is the first line of rows as they are sent.
func header(columns []column) string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = escape.Replace(c.name)
	}
	return magic + "\t" + strings.Join(names, "\t") + "\n"
}

// escape writes names as COPY writes values.
var (
	escape   = strings.NewReplacer("\\", "\\\\", "\b", "\\b", "\f", "\\f", "\n", "\\n", "\r", "\\r", "\t", "\\t", "\v", "\\v")
	unescape = strings.NewReplacer("\\\\", "\\", "\\b", "\b", "\\f", "\f", "\\n", "\n", "\\r", "\r", "\\t", "\t", "\\v", "\v")
)

// parseHeader returns the columns of rows that were sent.
func parseHeader(line string) ([]string, error) {
	rest, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), magic+"\t")
	if !ok {
		return nil, fmt.Errorf("%w: they begin with %.40q", ErrRows, line)
	}
	names := strings.Split(rest, "\t")
	for i, name := range names {
		names[i] = unescape.Replace(name)
	}
	return names, nil
}

// numbers are types whose values are sorted as numbers. Others are sorted by the
// bytes of their text; of binary ones these sort as the values do.
var (
	numbers = []string{"int2", "int4", "int8", "oid"}
	binary  = []string{"uuid", "bytea", "bool"}
)

func (c column) sorted() string {
	switch {
	case slices.Contains(numbers, c.kind), slices.Contains(binary, c.kind):
		return "t." + c.ident()
	case c.kind == "text" || c.kind == "varchar":
		return "t." + c.ident() + ` COLLATE "C"`
	default:
		return "format('%s', t." + c.ident() + `) COLLATE "C"`
	}
}

// sendRows writes an owner's rows of a table, which the transaction sees.
func (s *Store) sendRows(ctx context.Context, tx pgx.Tx, t *table, owner string, w io.Writer) error {
	var there bool
	err := tx.QueryRow(ctx, fmt.Sprintf("SELECT EXISTS (SELECT FROM %s t WHERE %s)", t.ident, t.of(owner, "t."))).Scan(&there)
	if err != nil {
		return fmt.Errorf("read %s: %w", t.label, err)
	}
	if !there {
		return s.missing(ctx, tx, owner, t.object)
	}
	columns, err := t.columns(ctx, tx)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(w, header(columns)); err != nil {
		return fmt.Errorf("read %s: %w", t.label, err)
	}
	return t.copyOut(ctx, tx, columns, owner, w)
}

// send writes an object.
func (s *Store) send(ctx context.Context, tx pgx.Tx, owner, name string, w io.Writer) error {
	t, err := s.table(name)
	switch {
	case err != nil:
		return err
	case t != nil:
		return s.sendRows(ctx, tx, t, owner, w)
	default:
		return s.sendBlob(ctx, tx, owner, name, w)
	}
}

// Open sends a snapshot of the object while it is read. It keeps a connection,
// and the database from forgetting what was deleted since, until it is closed.
func (s *Store) Open(ctx context.Context, owner, name string) (io.ReadCloser, error) {
	if err := objectstore.CheckOwner(owner); err != nil {
		return nil, err
	}
	if _, err := s.table(name); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	in, out := io.Pipe()
	r := &reader{in: in, b: bufio.NewReaderSize(in, 64<<10), cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		// The pipe ends when the connection is given back: who has read all of it
		// has nothing to cancel.
		_ = out.CloseWithError(s.reading(ctx, func(tx pgx.Tx) error { return s.send(ctx, tx, owner, name, out) }))
	}()
	// The first bytes tell whether the object is there. Empty ones are.
	if _, err := r.b.Peek(1); err != nil && err != io.EOF {
		_ = r.Close()
		return nil, err
	}
	return r, nil
}

type reader struct {
	in     *io.PipeReader
	b      *bufio.Reader
	cancel context.CancelFunc
	done   chan struct{}
}

func (r *reader) Read(b []byte) (int, error) { return r.b.Read(b) }

// Close ends the sending, if it hasn't ended, and waits for it.
func (r *reader) Close() error {
	r.cancel()
	_ = r.in.Close()
	<-r.done
	return nil
}

// Digest reads the object and sums it up.
func (s *Store) Digest(ctx context.Context, owner, name string) (string, error) {
	if err := objectstore.CheckOwner(owner); err != nil {
		return "", err
	}
	sum := sha256.New()
	err := s.reading(ctx, func(tx pgx.Tx) error { return s.send(ctx, tx, owner, name, sum) })
	if err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// arrival is an object that is sent to us: summed up, counted, and with the
// reason why it broke off.
type arrival struct {
	r    io.Reader
	size int64
	err  error
}

func (in *arrival) Read(b []byte) (int, error) {
	n, err := in.r.Read(b)
	in.size += int64(n)
	if err != nil && err != io.EOF {
		in.err = err
	}
	return n, err
}

// Put replaces an object: of a table, the owner's rows in it, by their
// difference; those that are gone take the rows with them that refer to them. In
// a copy that may not be written to, rows that refer to rows of other tables that
// aren't there are left out; then it returns objectstore.ErrChanged, and ErrUnfit,
// should they never come.
func (s *Store) Put(ctx context.Context, owner, name string, r io.Reader, as objectstore.Mark) (objectstore.Object, error) {
	o := objectstore.Object{Name: name}
	if err := objectstore.CheckOwner(owner); err != nil {
		return o, err
	}
	t, err := s.table(name)
	if err != nil {
		return o, err
	}
	if t != nil && !t.kind.fits(owner) {
		return o, fmt.Errorf("owner %.80q has no rows in %s, whose owners are of type %s: %w: %w", owner, t.label, t.kind, objectstore.ErrUnfit, objectstore.ErrName)
	}
	if t == nil && likeTable(name) {
		if r, err = notRows(name, r); err != nil {
			return o, err
		}
	}
	sum := sha256.New()
	in := &arrival{r: io.TeeReader(r, sum)}
	err = s.writing(ctx, func(tx pgx.Tx) error {
		// Without the lock this only saves the way of what would be refused.
		have, err := s.admit(ctx, tx, owner, as)
		if err != nil {
			return err
		}
		w := writing{owner: owner, as: as, there: have.State != objectstore.Absent}
		if t != nil {
			o.Version, err = s.putRows(ctx, tx, t, w, in)
		} else {
			o.Version, err = s.putBlob(ctx, tx, w, name, in, func() string { return hex.EncodeToString(sum.Sum(nil)) })
		}
		if in.err != nil {
			err = fmt.Errorf("read object: %w", in.err)
		}
		return err
	})
	if t != nil && in.err == nil {
		err = unfit(err)
	}
	if err != nil {
		return objectstore.Object{}, err
	}
	if o.Version == "" {
		return objectstore.Object{}, fmt.Errorf("%w: rows of %s refer to rows of configured tables that aren't there or were not sent yet, the others are written: %w",
			objectstore.ErrUnfit, t.label, objectstore.ErrChanged)
	}
	o.Size, o.Digest = in.size, hex.EncodeToString(sum.Sum(nil))
	if t != nil {
		s.remember(sizeKey{owner, name}, size{o.Version, o.Size})
	}
	return o, nil
}

// notRows refuses the rows of a table that this site doesn't have, which would be
// kept here as bytes that no application sees. Anything else it passes on.
func notRows(name string, r io.Reader) (io.Reader, error) {
	b := bufio.NewReader(r)
	if begin, _ := b.Peek(len(magic)); string(begin) == magic { // An error comes again when it is read.
		return nil, fmt.Errorf("object name %.80q is of a table that this site doesn't have: %w: %w", name, objectstore.ErrUnfit, objectstore.ErrName)
	}
	return b, nil
}

// writing is a Put under way.
type writing struct {
	owner string
	as    objectstore.Mark
	there bool // there was a copy when it began
}

// entering locks the owner, checks the mark under the lock and sees to it that
// the copy is there. A copy that was moved away and deleted since the write began
// is not begun anew by it: nobody would read it.
func (s *Store) entering(ctx context.Context, tx pgx.Tx, w writing) error {
	owner, as := w.owner, w.as
	if err := s.lock(ctx, tx, owner); err != nil {
		return err
	}
	have, err := s.admit(ctx, tx, owner, as)
	if err != nil {
		return err
	}
	if have.State == objectstore.Absent && w.there {
		left, err := s.left(ctx, tx, owner)
		if err == nil && left != (objectstore.Mark{}) {
			err = &objectstore.MarkedError{Owner: owner, Have: left, Want: as}
		}
		if err != nil {
			return err
		}
	}
	if have.State == objectstore.Absent || have.State == objectstore.Unmarked {
		return s.setMark(ctx, tx, owner, objectstore.Mark{})
	}
	return nil
}

// Remove removes an object; of a table, the owner's rows in it and those that
// refer to them.
func (s *Store) Remove(ctx context.Context, owner, name string, as objectstore.Mark) error {
	if err := objectstore.CheckOwner(owner); err != nil {
		return err
	}
	t, err := s.table(name)
	if err != nil {
		return err
	}
	return s.writing(ctx, func(tx pgx.Tx) error {
		if err := s.lock(ctx, tx, owner); err != nil {
			return err
		}
		have, err := s.admit(ctx, tx, owner, as)
		switch {
		case err != nil:
			return err
		case have.State == objectstore.Absent:
			return fmt.Errorf("owner %.80q: %w", owner, objectstore.ErrNoOwner)
		case t == nil:
			return s.removeBlob(ctx, tx, owner, name)
		}
		if have.State == objectstore.Unmarked {
			// Without rows it is still a copy.
			if err := s.setMark(ctx, tx, owner, have); err != nil {
				return err
			}
		}
		if err := s.asMover(ctx, tx, owner, as); err != nil {
			return err
		}
		return s.deleteWith(ctx, tx, t, owner, t.of(owner, "t0."), 0)
	})
}
