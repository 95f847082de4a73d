package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// referredFromOutside returns ErrTables if a table that isn't configured refers to
// one that is: its rows would stay behind when an owner moves, and when the old
// copy is deleted they would go with it (ON DELETE CASCADE), lose what they refer
// to (SET NULL), or forbid the deletion for ever.
func referredFromOutside(ctx context.Context, q querier, tables []*table) error {
	label := map[uint32]string{}
	var ours []uint32
	for _, t := range tables {
		label[t.oid] = t.label
		ours = append(ours, t.oid)
		for _, p := range t.parts {
			label[p.oid] = t.label
			ours = append(ours, p.oid)
		}
	}
	if len(ours) == 0 {
		return nil
	}
	// Of a foreign key from or to a partitioned table there is a copy for each
	// partition; the first is enough.
	rows, err := q.Query(ctx, `SELECT n.nspname || '.' || c.relname, f.conname::text, pg_get_constraintdef(f.oid), f.confrelid
		FROM pg_constraint f JOIN pg_class c ON c.oid = f.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE f.contype = 'f' AND f.conparentid = 0 AND f.confrelid = ANY ($1::oid[]) AND f.conrelid <> ALL ($1::oid[])
		ORDER BY 1, 2`, ours)
	if err != nil {
		return fmt.Errorf("look for references from other tables: %w", err)
	}
	outside, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) {
		var table, key, definition string
		var to uint32
		err := row.Scan(&table, &key, &definition, &to)
		return fmt.Sprintf("%s refers to %s (%s: %s)", table, label[to], key, definition), err
	})
	if err != nil {
		return fmt.Errorf("look for references from other tables: %w", err)
	}
	if len(outside) > 0 {
		return fmt.Errorf("%w: rows of tables that aren't configured would be lost or in the way when what they refer to moves away: %s: "+
			"list each table in stores.postgres.tables, with a column that says whose a row is, or drop its foreign key",
			ErrTables, strings.Join(outside, "; "))
	}
	return nil
}

// warn tells the operator what works, but not well.
func (s *Store) warn(ctx context.Context, q querier, t *table) error {
	if !t.indexed {
		s.o.Logger.Warn().Str("table", t.label).Str("column", t.owner).Msg("no index by owner: every move reads the whole table")
	}
	keys, err := t.sharedKeys(ctx, q)
	if err != nil {
		return fmt.Errorf("table %s: %w", t.label, err)
	}
	for _, k := range keys {
		s.o.Logger.Warn().Str("table", t.label).Str("key", k.index).Str("sequence", k.sequence).
			Msg("this key is drawn from a sequence that begins and steps as at any site: two sites give the same key to rows of two owners, " +
				"and neither can be moved to the other; use uuid, or let the sequence of site i of n yield values of its own: INCREMENT BY n RESTART i")
	}
	return nil
}

// sharedKey is a unique index whose values two sites may both hand out.
type sharedKey struct{ index, sequence string }

// sharedKeys finds the table's unique keys that are drawn from a sequence with the
// bounds and the step that every sequence has. A key with the owner in it is the
// owner's own.
func (t *table) sharedKeys(ctx context.Context, q querier) ([]sharedKey, error) {
	var columns, sequences []string
	for _, s := range t.serial {
		columns, sequences = append(columns, s.column), append(sequences, s.ident)
	}
	if len(columns) == 0 {
		return nil, nil
	}
	rows, err := q.Query(ctx, `SELECT x.relname::text, s.name
		FROM unnest($2::text[], $3::text[]) s (col, name) JOIN pg_sequence p ON p.seqrelid = s.name::regclass
			JOIN pg_attribute a ON a.attrelid = $1 AND a.attname = s.col
			JOIN pg_index i ON i.indrelid = $1 AND i.indisunique AND a.attnum = ANY (i.indkey) JOIN pg_class x ON x.oid = i.indexrelid
			CROSS JOIN LATERAL (SELECT CASE p.seqtypid WHEN 'int2'::regtype THEN 32767 WHEN 'int4'::regtype THEN 2147483647
				ELSE 9223372036854775807 END AS most) y
		WHERE (p.seqincrement = 1 AND p.seqmin IN (0, 1) AND p.seqmax = y.most
				OR p.seqincrement = -1 AND p.seqmax IN (0, -1) AND p.seqmin = -y.most - 1)
			AND NOT EXISTS (SELECT FROM pg_attribute o WHERE o.attrelid = $1 AND o.attname = $4 AND o.attnum = ANY (i.indkey))
		ORDER BY 1, 2`, t.oid, columns, sequences, t.column)
	if err != nil {
		return nil, fmt.Errorf("look at keys: %w", err)
	}
	keys, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (k sharedKey, err error) {
		err = row.Scan(&k.index, &k.sequence)
		return k, err
	})
	if err != nil {
		return nil, fmt.Errorf("look at keys: %w", err)
	}
	return keys, nil
}
