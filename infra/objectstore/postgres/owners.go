package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"penstock/infra/objectstore"
)

// page is how many owners are read at a time.
const page = 500

// found is an owner on a page.
type found struct {
	owner []byte
	at    *string // where the next page begins
	known bool    // listed from another place already
	mark  string
}

// Owners lists the owners that have a mark, then those that have objects, then
// those of each table that none of these places knows. It reads a page at a
// time, by the indexes, and holds no connection while fn runs. An owner that is
// written or deleted meanwhile may be missed, or listed twice.
func (s *Store) Owners(ctx context.Context, fn func(string, objectstore.Mark) error) error {
	for _, query := range s.ownerQueries() {
		from := "NULL"
		for from != "" {
			next, err := s.ownersFrom(ctx, query, from, fn)
			if err != nil {
				return err
			}
			from = next
		}
	}
	return nil
}

// ownersFrom lists one page and returns where the next one begins, as a literal;
// empty after the last.
func (s *Store) ownersFrom(ctx context.Context, query func(from string) string, from string, fn func(string, objectstore.Mark) error) (string, error) {
	rows, err := s.reads.Query(ctx, query(from))
	if err != nil {
		return "", ended(ctx, fmt.Errorf("list owners: %w", err))
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (f found, err error) {
		err = row.Scan(&f.owner, &f.at, &f.known, &f.mark)
		return f, err
	})
	if err != nil {
		return "", ended(ctx, fmt.Errorf("list owners: %w", err))
	}
	for _, f := range list {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		if f.known {
			continue
		}
		var m objectstore.Mark
		if err := decodeMark(f.mark, &m); err != nil {
			return "", err
		}
		if err := fn(string(f.owner), m); err != nil {
			return "", err
		}
	}
	if len(list) < page || list[len(list)-1].at == nil {
		return "", nil
	}
	return literal(*list[len(list)-1].at), nil
}

// ownerQueries returns a query for each place where owners stand: it takes the
// last owner of the page before, as an SQL value that may be null, and yields the
// owner, the same as text, whether it stands in a place before, and its mark.
func (s *Store) ownerQueries() []func(from string) string {
	copies := func(from string) string {
		return fmt.Sprintf(s.sql(`SELECT c.owner, c.owner::text, c.gone OR NOT c.made AND c.mark IS NULL, coalesce(c.mark::text, '')
			FROM {S}.copies c WHERE %[1]s::bytea IS NULL OR c.owner > %[1]s::bytea ORDER BY c.owner LIMIT %[2]d`), from, page)
	}
	queries := []func(string) string{copies, s.distinct(s.sql("{S}.objects"), "owner", "bytea", nil)}
	for i, t := range s.tables {
		queries = append(queries, s.distinct(t.ident, t.owner, string(t.kind), s.tables[:i]))
	}
	return queries
}

// distinct skips through the index of a column, from one owner to the next.
func (s *Store) distinct(table, column, kind string, before []*table) func(string) string {
	asBytes := "o"
	if kind != "bytea" {
		asBytes = "convert_to(o::text, 'UTF8')"
	}
	known := []string{fmt.Sprintf(s.sql("EXISTS (SELECT FROM {S}.copies c WHERE c.owner = %s AND NOT c.gone AND (c.made OR c.mark IS NOT NULL))"), asBytes)}
	if kind != "bytea" {
		known = append(known, fmt.Sprintf(s.sql("EXISTS (SELECT FROM {S}.objects c WHERE c.owner = %s)"), asBytes))
	}
	for _, b := range before {
		if string(b.kind) == kind {
			known = append(known, fmt.Sprintf("EXISTS (SELECT FROM %s b WHERE b.%s = o)", b.ident, b.owner))
		} else {
			// An owner of another type is the same if its text is. Few mix them,
			// and then the index doesn't help.
			known = append(known, fmt.Sprintf("EXISTS (SELECT FROM %s b WHERE b.%s::text = o::text)", b.ident, b.owner))
		}
	}
	return func(from string) string {
		return fmt.Sprintf(s.sql(`WITH RECURSIVE d (o) AS (
			(SELECT t.%[2]s::%[3]s FROM %[1]s t WHERE t.%[2]s IS NOT NULL AND (%[4]s::%[3]s IS NULL OR t.%[2]s > %[4]s::%[3]s)
				ORDER BY t.%[2]s LIMIT 1)
			UNION ALL
			SELECT (SELECT t.%[2]s::%[3]s FROM %[1]s t WHERE t.%[2]s > d.o ORDER BY t.%[2]s LIMIT 1) FROM d WHERE d.o IS NOT NULL)
			SELECT %[6]s, o::text, %[5]s, '' FROM (SELECT o FROM d WHERE o IS NOT NULL LIMIT %[7]d) p`),
			table, column, kind, from, strings.Join(known, " OR "), asBytes, page)
	}
}
