package postgres

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"penstock/infra/objectstore"
)

const (
	// stage is the temporary table that takes what is sent.
	stage = "pg_temp.penstock_stage"
	// headerMax bounds the first line: 1,600 columns of names full of escapes.
	headerMax = 1 << 20
)

// putRows makes the owner's rows of a table those that are sent, and returns
// their version; none if some didn't fit. What is sent is taken up before the
// owner is locked. Only a mover writes to a copy that may not be written to: there
// what is here is compared on the way, and only the difference is taken up.
func (s *Store) putRows(ctx context.Context, tx pgx.Tx, t *table, w writing, in *arrival) (string, error) {
	owner, as := w.owner, w.as
	columns, err := t.columns(ctx, tx)
	if err != nil {
		return "", err
	}
	all := list(columns, column.ident)
	_, err = tx.Exec(ctx, fmt.Sprintf("CREATE TEMPORARY TABLE penstock_stage ON COMMIT DROP AS SELECT %s, false AS penstock_gone FROM %s WITH NO DATA", all, t.ident))
	if err != nil {
		return "", fmt.Errorf("stage rows of %s: %w", t.label, err)
	}
	b := bufio.NewReaderSize(in, 64<<10)
	if err := t.readHeader(b, columns); err != nil {
		return "", err
	}
	var at string
	if as.Writable() {
		err = s.copyIn(ctx, tx, t, b, all)
	} else {
		at, err = s.stageDifference(ctx, tx, t, owner, columns, b)
	}
	if err == nil {
		err = s.checkStage(ctx, tx, t, owner)
	}
	if err != nil {
		return "", err
	}
	if err := s.entering(ctx, tx, w); err != nil {
		return "", err
	}
	if at != "" {
		now, err := s.versionOf(ctx, tx, t, owner)
		if err == nil && now != at {
			err = fmt.Errorf("rows of %s were written meanwhile: %w", t.label, objectstore.ErrChanged)
		}
		if err != nil {
			return "", err
		}
	}
	if err := s.asMover(ctx, tx, owner, as); err != nil {
		return "", err
	}
	// What is checked when a transaction commits would fail too late to tell what
	// it is that doesn't fit.
	if _, err := tx.Exec(ctx, "SET CONSTRAINTS ALL IMMEDIATE"); err != nil {
		return "", fmt.Errorf("write rows of %s: %w", t.label, err)
	}
	partly, err := s.applyWhatFits(ctx, tx, t, owner, columns, as)
	if err != nil || partly {
		return "", err
	}
	for _, q := range t.serial {
		if err := q.pass(ctx, tx); err != nil {
			return "", fmt.Errorf("table %s: %w", t.label, err)
		}
	}
	return s.versionOf(ctx, tx, t, owner)
}

// readHeader reads the first line, which must name the table's columns.
func (t *table) readHeader(b *bufio.Reader, columns []column) error {
	line, err := readLine(b)
	if err != nil {
		return fmt.Errorf("table %s: %w", t.label, err)
	}
	names, err := parseHeader(line)
	if err != nil {
		return fmt.Errorf("table %s: %w", t.label, err)
	}
	if !slices.EqualFunc(names, columns, func(name string, c column) bool { return name == c.name }) {
		return fmt.Errorf("table %s: %w: columns %q were sent, it has %q", t.label, ErrRows, names,
			list(columns, func(c column) string { return c.name }))
	}
	return nil
}

// checkStage sees to it that all staged rows are the owner's, and that the server
// knows how many they are.
func (s *Store) checkStage(ctx context.Context, tx pgx.Tx, t *table, owner string) error {
	if _, err := tx.Exec(ctx, "ANALYZE "+stage); err != nil {
		return fmt.Errorf("stage rows of %s: %w", t.label, err)
	}
	var others bool
	err := tx.QueryRow(ctx, fmt.Sprintf("SELECT EXISTS (SELECT FROM %s s WHERE (%s) IS NOT TRUE)", stage, t.of(owner, "s."))).Scan(&others)
	if err == nil && others {
		err = fmt.Errorf("%w: some are not of owner %.80q", ErrRows, owner)
	}
	if err != nil {
		return fmt.Errorf("stage rows of %s: %w", t.label, err)
	}
	return nil
}

func readLine(b *bufio.Reader) (string, error) {
	var line []byte
	for {
		piece, err := b.ReadSlice('\n')
		line = append(line, piece...)
		switch {
		case err == nil:
			return string(line), nil
		case !errors.Is(err, bufio.ErrBufferFull) && !errors.Is(err, io.EOF):
			return "", err
		case errors.Is(err, io.EOF) || len(line) > headerMax:
			return "", fmt.Errorf("%w: no first line", ErrRows)
		}
	}
}

// applyWhatFits writes the staged rows. Of a source that is written to, rows may
// be sent that refer to rows of another table, which was sent before these were
// there. In a copy to come, which nobody reads, the others are written all the
// same, so that only the difference is left for later.
func (s *Store) applyWhatFits(ctx context.Context, tx pgx.Tx, t *table, owner string, columns []column, as objectstore.Mark) (partly bool, err error) {
	err = pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { return s.apply(ctx, tx, t, owner, columns, !as.Writable()) })
	if code(err) != foreignKeyViolation || as.Writable() {
		return false, err
	}
	for _, f := range t.refs {
		to := s.byOID(f.to)
		if to == nil || to == t {
			continue
		}
		var refers, given []string
		for i := range f.columns {
			refers = append(refers, fmt.Sprintf("p.%s = s.%s", quote(f.target[i]), quote(f.columns[i])))
			given = append(given, fmt.Sprintf("s.%s IS NOT NULL", quote(f.columns[i])))
		}
		tag, err := tx.Exec(ctx, fmt.Sprintf("DELETE FROM %s s WHERE s.penstock_gone IS NOT TRUE AND %s AND NOT EXISTS (SELECT FROM %s p WHERE %s)",
			stage, strings.Join(given, " AND "), to.ident, strings.Join(refers, " AND ")))
		if err != nil {
			return false, fmt.Errorf("look for rows of %s that refer to nothing: %w", t.label, err)
		}
		partly = partly || tag.RowsAffected() > 0
	}
	if !partly {
		return false, err
	}
	return true, s.apply(ctx, tx, t, owner, columns, true)
}

func (s *Store) byOID(oid uint32) *table {
	if i := slices.IndexFunc(s.tables, func(t *table) bool { return t.oid == oid }); i >= 0 {
		return s.tables[i]
	}
	return nil
}

// apply makes the owner's rows those that are staged. It is one statement, so
// that it may go through any state in between: rows are deleted before others
// come with the same value in a unique column, and references are checked at its
// end.
func (s *Store) apply(ctx context.Context, tx pgx.Tx, t *table, owner string, columns []column, difference bool) error {
	var key, fixed []string
	for _, c := range t.key {
		key = append(key, fmt.Sprintf("s.%[1]s = t0.%[1]s", c.ident()))
	}
	var free []column
	for _, c := range columns {
		if !c.fixed {
			free = append(free, c)
		} else if !slices.ContainsFunc(t.key, func(k column) bool { return k.name == c.name }) {
			// Nobody may update it: a row in which it differs is another row.
			fixed = append(fixed, fmt.Sprintf("ROW(s.%[1]s)::record OPERATOR(pg_catalog.*=) ROW(t0.%[1]s)::record", c.ident()))
		}
	}
	same := strings.Join(append(slices.Clone(key), fixed...), " AND ")
	ours := t.of(owner, "t0.")
	gone := fmt.Sprintf("%s AND NOT EXISTS (SELECT FROM %s s WHERE %s)", ours, stage, same)
	if difference {
		gone = fmt.Sprintf("%s AND EXISTS (SELECT FROM %s s WHERE %s AND (s.penstock_gone%s))", ours, stage, strings.Join(key, " AND "),
			strings.Join(append([]string{""}, fixed...), " OR NOT "))
	}
	if err := s.deleteChildren(ctx, tx, t, owner, gone, 0); err != nil {
		return err
	}
	of := func(alias string) func(column) string {
		return func(c column) string { return alias + c.ident() }
	}
	var changed string
	if len(free) > 0 {
		// The images are compared: not all types can be, and to some different
		// texts are equal.
		changed = fmt.Sprintf(`changed AS (UPDATE %s t0 SET (%s) = ROW(%s) FROM %s s WHERE %s AND %s AND s.penstock_gone IS NOT TRUE
			AND ROW(%s)::record OPERATOR(pg_catalog.*<>) ROW(%s)::record RETURNING 1)`, t.ident, list(free, column.ident), list(free, of("s.")),
			stage, same, ours, list(free, of("t0.")), list(free, of("s.")))
	} else {
		changed = "changed AS (SELECT)"
	}
	_, err := tx.Exec(ctx, fmt.Sprintf(`WITH gone AS (DELETE FROM %[1]s t0 WHERE %[2]s RETURNING 1), %[3]s
		INSERT INTO %[1]s (%[4]s) OVERRIDING SYSTEM VALUE SELECT %[5]s FROM %[6]s s
		WHERE (SELECT count(*) FROM gone) >= 0 AND (SELECT count(*) FROM changed) >= 0
			AND s.penstock_gone IS NOT TRUE AND NOT EXISTS (SELECT FROM %[1]s t0 WHERE %[7]s AND %[8]s)`,
		t.ident, gone, changed, list(columns, column.ident), list(columns, of("s.")), stage, same, ours))
	if err != nil {
		if code(err) == uniqueViolation {
			err = fmt.Errorf("%w: %w", ErrTaken, err)
		}
		return fmt.Errorf("write rows of %s: %w", t.label, err)
	}
	return nil
}

// deleteWith deletes rows, and before them those of other tables that refer to
// them. where speaks of the table as t and depth.
func (s *Store) deleteWith(ctx context.Context, tx pgx.Tx, t *table, owner, where string, depth int) error {
	if err := s.deleteChildren(ctx, tx, t, owner, where, depth); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, fmt.Sprintf("DELETE FROM %s t%d WHERE %s", t.ident, depth, where)); err != nil {
		return fmt.Errorf("delete rows of %s: %w", t.label, err)
	}
	return nil
}

// deleteChildren deletes the owner's rows that refer to rows that are to go. At
// the source the latter are gone, so the former are, or refer to something else
// and will be sent.
func (s *Store) deleteChildren(ctx context.Context, tx pgx.Tx, t *table, owner, where string, depth int) error {
	if len(t.children) == 0 {
		return nil
	}
	var some bool
	err := tx.QueryRow(ctx, fmt.Sprintf("SELECT EXISTS (SELECT FROM %s t%d WHERE %s)", t.ident, depth, where)).Scan(&some)
	if err != nil {
		return fmt.Errorf("look for rows of %s to delete: %w", t.label, err)
	}
	if !some {
		return nil
	}
	for _, c := range t.children {
		if !c.kind.fits(owner) {
			continue
		}
		var refers []string
		for i := range c.by.columns {
			refers = append(refers, fmt.Sprintf("t%d.%s = t%d.%s", depth, quote(c.by.target[i]), depth+1, quote(c.by.columns[i])))
		}
		below := fmt.Sprintf("%s AND EXISTS (SELECT FROM %s t%d WHERE %s AND %s)",
			c.of(owner, fmt.Sprintf("t%d.", depth+1)), t.ident, depth, strings.Join(refers, " AND "), where)
		if err := s.deleteWith(ctx, tx, c.table, owner, below, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// pass moves a sequence past the greatest value that has arrived, so that it
// doesn't yield one of them again. It keeps to the sequence's bounds and steps:
// where sites draw from ranges of their own, values of other ranges are none of
// its business.
func (q sequence) pass(ctx context.Context, tx pgx.Tx) error {
	var greatest *int64
	if err := tx.QueryRow(ctx, fmt.Sprintf("SELECT max(%s)::bigint FROM %s WHERE penstock_gone IS NOT TRUE", quote(q.column), stage)).Scan(&greatest); err != nil {
		return fmt.Errorf("look at sequence: %w", err)
	}
	if greatest == nil {
		return nil
	}
	next, step, err := q.behind(ctx, tx, *greatest)
	if err != nil || next == 0 {
		return err
	}
	// While others draw from it, it could only be set back by mistake. The lock
	// that prevents it is this statement's, and only for the sequence's owner.
	_, err = tx.Conn().PgConn().Exec(ctx, fmt.Sprintf(`SAVEPOINT penstock_sequence; ALTER SEQUENCE %s INCREMENT BY %d; RELEASE SAVEPOINT penstock_sequence`, q.ident, step)).ReadAll()
	if code(err) == noPrivilege {
		_, err = tx.Conn().PgConn().Exec(ctx, "ROLLBACK TO SAVEPOINT penstock_sequence; RELEASE SAVEPOINT penstock_sequence").ReadAll()
	}
	if err != nil {
		return fmt.Errorf("lock sequence: %w", err)
	}
	if next, _, err = q.behind(ctx, tx, *greatest); err != nil || next == 0 {
		return err
	}
	if _, err := tx.Exec(ctx, "SELECT setval($1::regclass, $2)", q.ident, next); err != nil {
		return fmt.Errorf("set sequence: %w", err)
	}
	return nil
}

// behind returns the value to which the sequence is to be set so that its next is
// above greatest; 0 if it needn't be.
func (q sequence) behind(ctx context.Context, tx pgx.Tx, greatest int64) (next, step int64, err error) {
	var last, least, most int64
	var called bool
	err = tx.QueryRow(ctx, fmt.Sprintf(`SELECT s.last_value, s.is_called, p.seqincrement, p.seqmin, p.seqmax
		FROM %s s, pg_sequence p WHERE p.seqrelid = %s::regclass`, q.ident, literal(q.ident))).Scan(&last, &called, &step, &least, &most)
	if err != nil {
		return 0, 0, fmt.Errorf("look at sequence: %w", err)
	}
	if step <= 0 || greatest < least || greatest > most || greatest < last || called && greatest == last {
		return 0, step, nil
	}
	next = last + (greatest-last+step-1)/step*step
	if next > most {
		return 0, step, nil
	}
	return next, step, nil
}
