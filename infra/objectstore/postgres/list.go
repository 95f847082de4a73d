package postgres

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"penstock/infra/objectstore"
)

const (
	// manySlots is how many slots an owner's changes in a table may be counted in
	// before they are put together.
	manySlots = 64
	// sizesKept bounds the memory for sizes that are known.
	sizesKept = 10_000
)

// listing is what an owner has here. Its objects' sizes are not filled in.
type listing struct {
	mark    objectstore.Mark
	objects []objectstore.Object // ascending by name
	many    []string             // labels of tables whose changes are counted in too many slots
}

// look reads the mark and which objects there are at which versions, without
// reading them. ErrNoOwner.
func (s *Store) look(ctx context.Context, q querier, owner string) (l listing, err error) {
	if l.mark, err = s.state(ctx, q, owner); err != nil {
		return l, err
	}
	if l.mark.State == objectstore.Absent {
		return l, fmt.Errorf("owner %.80q: %w", owner, objectstore.ErrNoOwner)
	}
	if l.objects, err = s.loose(ctx, q, owner); err != nil {
		return l, err
	}
	all, err := s.versions(ctx, q, s.tables, owner)
	if err != nil {
		return l, err
	}
	for i, v := range all {
		t := s.tables[i]
		if v.slots > manySlots {
			l.many = append(l.many, t.label)
		}
		if v.there {
			l.objects = append(l.objects, objectstore.Object{Name: t.object, Version: v.text})
		}
	}
	slices.SortFunc(l.objects, func(a, b objectstore.Object) int { return cmp.Compare(a.Name, b.Name) })
	return l, nil
}

// version is what an owner has in a table.
type version struct {
	text  string
	there bool // there are rows
	slots int  // in how many their changes are counted
}

// versions returns the versions of an owner's rows in tables. Slots are numbered
// over all owners and times, so that a copy that was deleted and comes back has
// other versions. Columns are part of it: to add one changes every row.
func (s *Store) versions(ctx context.Context, q querier, tables []*table, owner string) ([]version, error) {
	if len(tables) == 0 {
		return nil, nil
	}
	parts := make([]string, len(tables))
	for i, t := range tables {
		parts[i] = fmt.Sprintf(`SELECT %d, EXISTS (SELECT FROM %s t WHERE %s), %d::oid, %s`, i, t.ident, t.of(owner, "t."), t.oid, literal(t.label))
	}
	rows, err := q.Query(ctx, fmt.Sprintf(s.sql(`SELECT r.there, count(c.slot), coalesce(min(c.slot), 0), coalesce(sum(c.n), 0)::bigint,
			(SELECT hashtextextended(string_agg(a.attname || ' ' || a.atttypid, ',' ORDER BY a.attname::text COLLATE "C"), 0)
				FROM pg_attribute a WHERE a.attrelid = r.of AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '')
		FROM (%s) r (i, there, of, label) LEFT JOIN {S}.changes c ON c.owner = %s AND c.object = r.label
		GROUP BY r.i, r.there, r.of ORDER BY r.i`), strings.Join(parts, " UNION ALL "), bytea(owner)))
	if err != nil {
		return nil, fmt.Errorf("read versions: %w", err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (v version, err error) {
		var first, n, columns int64
		err = row.Scan(&v.there, &v.slots, &first, &n, &columns)
		v.text = fmt.Sprintf("%d.%d.%08x", first, n, uint32(columns))
		return v, err
	})
	if err != nil {
		return nil, fmt.Errorf("read versions: %w", err)
	}
	return all, nil
}

// versionOf is versions for one table.
func (s *Store) versionOf(ctx context.Context, q querier, t *table, owner string) (string, error) {
	all, err := s.versions(ctx, q, []*table{t}, owner)
	if err != nil {
		return "", err
	}
	return all[0].text, nil
}

// version is that of the whole.
func (l listing) version() string {
	sum := sha256.New()
	for _, o := range l.objects {
		fmt.Fprintf(sum, "%q %s\n", o.Name, o.Version)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// List returns the objects of an owner: its rows, one object a table, and others.
// Tables in which it has none are no objects. Rows are read for their
// size, where it isn't known for that version.
func (s *Store) List(ctx context.Context, owner string) (objectstore.Listing, error) {
	var out objectstore.Listing
	var many []string
	if err := objectstore.CheckOwner(owner); err != nil {
		return out, err
	}
	err := s.reading(ctx, func(tx pgx.Tx) error {
		l, err := s.look(ctx, tx, owner)
		if err != nil {
			return err
		}
		many = l.many
		out = objectstore.Listing{Objects: l.objects, Mark: l.mark, Version: l.version()}
		for i := range out.Objects {
			o := &out.Objects[i]
			if t := s.byName[o.Name]; t != nil {
				if o.Size, err = s.size(ctx, tx, t, owner, o.Version); err != nil {
					return err
				}
			}
			out.Bytes += o.Size
		}
		return nil
	})
	if err != nil {
		return objectstore.Listing{}, err
	}
	s.gather(ctx, owner, many)
	return out, nil
}

// gather puts the changes of tables together that were counted in very many
// slots, which writers in frozen transactions make. It is left for another time
// where somebody has the slots.
func (s *Store) gather(ctx context.Context, owner string, labels []string) {
	for _, label := range labels {
		err := s.writing(ctx, func(tx pgx.Tx) error {
			of := fmt.Sprintf("owner = %s AND object = %s", bytea(owner), literal(label))
			_, err := tx.Conn().PgConn().Exec(ctx, fmt.Sprintf(s.sql(`SET LOCAL lock_timeout = 20;
				WITH first AS (SELECT slot FROM {S}.changes WHERE %[1]s ORDER BY slot LIMIT 1 FOR NO KEY UPDATE),
				gone AS (DELETE FROM {S}.changes WHERE %[1]s AND slot IN (
					SELECT slot FROM {S}.changes WHERE %[1]s AND slot > (SELECT slot FROM first) FOR UPDATE SKIP LOCKED) RETURNING n)
				UPDATE {S}.changes SET n = n + (SELECT coalesce(sum(n), 0) FROM gone) WHERE %[1]s AND slot = (SELECT slot FROM first)`), of)).ReadAll()
			return err
		})
		if err != nil && code(err) != lockNotAvailable {
			s.o.Logger.Debug().Err(err).Str("table", label).Msg("changes counted in many places stay there for now")
		}
	}
}

type sizeKey struct{ owner, object string }

type size struct {
	version string
	bytes   int64
}

// size returns the length of an owner's rows of a table as they are sent.
func (s *Store) size(ctx context.Context, tx pgx.Tx, t *table, owner, version string) (int64, error) {
	key := sizeKey{owner, t.object}
	s.mu.Lock()
	known := s.sizes[key]
	s.mu.Unlock()
	if known.version == version {
		return known.bytes, nil
	}
	// To send them to nowhere is faster than any expression over the columns.
	var n counter
	if err := s.sendRows(ctx, tx, t, owner, &n); err != nil {
		return 0, err
	}
	s.remember(key, size{version, int64(n)})
	return int64(n), nil
}

// counter counts what is written to it.
type counter int64

func (n *counter) Write(b []byte) (int, error) {
	*n += counter(len(b))
	return len(b), nil
}

func (s *Store) remember(key sizeKey, z size) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.sizes) >= sizesKept {
		clear(s.sizes) // it costs no more than to measure again
	}
	s.sizes[key] = z
}

// missing tells an object that isn't there from an owner who isn't.
func (s *Store) missing(ctx context.Context, q querier, owner, name string) error {
	m, err := s.state(ctx, q, owner)
	switch {
	case err != nil:
		return err
	case m.State == objectstore.Absent:
		return fmt.Errorf("owner %.80q: %w", owner, objectstore.ErrNoOwner)
	default:
		return fmt.Errorf("object %.80q of owner %.80q: %w", name, owner, objectstore.ErrNoObject)
	}
}
