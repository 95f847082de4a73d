package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"penstock/infra/objectstore"
)

// table is one of the configured tables as the catalogue describes it.
type table struct {
	oid    uint32
	label  string // schema.table: what the changes are counted under, and part of the object's name
	object string // the object's name: 00.schema.table, numbers in the order of foreign keys
	ident  string // quoted
	owner  string // the owner column, quoted
	column string // the same, plain
	kind   kind   // of the owner column
	key    []column
	parts  []part     // of a partitioned table
	refs   []foreign  // foreign keys of this table
	serial []sequence // that fill columns of it
	// children are the foreign keys of other configured tables to this one.
	children []child
	indexed  bool // by owner
}

// column of a table.
type column struct {
	name string
	kind string // the type's name; of a domain, what it is made of
	// fixed: the server lets nobody update it (GENERATED ALWAYS AS IDENTITY).
	fixed bool
}

func (c column) ident() string { return quote(c.name) }

// part is a partition, which may be written to directly.
type part struct {
	oid   uint32
	ident string
}

// foreign is a foreign key.
type foreign struct {
	to      uint32 // the table referred to
	columns []string
	target  []string
}

// child is a table whose rows refer to this one's.
type child struct {
	*table
	by foreign
}

// sequence fills a column.
type sequence struct{ column, ident string }

func quote(names ...string) string { return pgx.Identifier(names).Sanitize() }

// of is the condition for the rows of an owner: false where the table can't have
// any.
func (t *table) of(owner, alias string) string {
	if !t.kind.fits(owner) {
		return "false"
	}
	return fmt.Sprintf("%s%s = %s::%s", alias, t.owner, literal(owner), t.kind)
}

// refersToItself reports whether rows of the table refer to others of it.
func (t *table) refersToItself() bool {
	return slices.ContainsFunc(t.refs, func(f foreign) bool { return f.to == t.oid })
}

// columns returns the columns that hold data, by name. They are read each time:
// an operator may add one while we run, and its values must not be left behind.
func (t *table) columns(ctx context.Context, tx querier) ([]column, error) {
	rows, err := tx.Query(ctx, `SELECT a.attname::text, coalesce(b.typname, y.typname)::text, a.attidentity = 'a'
		FROM pg_attribute a JOIN pg_type y ON y.oid = a.atttypid LEFT JOIN pg_type b ON b.oid = y.typbasetype AND y.typtype = 'd'
		WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
		ORDER BY a.attname::text COLLATE "C"`, t.oid)
	if err != nil {
		return nil, fmt.Errorf("read columns: %w", err)
	}
	columns, err := pgx.CollectRows(rows, scanColumn)
	if err == nil && len(columns) == 0 {
		err = fmt.Errorf("table %s is gone: %w", t.label, ErrTables)
	}
	if err != nil {
		return nil, fmt.Errorf("read columns: %w", err)
	}
	return columns, nil
}

func scanColumn(row pgx.CollectableRow) (c column, err error) {
	err = row.Scan(&c.name, &c.kind, &c.fixed)
	return c, err
}

// readTables looks the tables up in the catalogue, in the order of their foreign
// keys.
func readTables(ctx context.Context, tx querier, list []Table) ([]*table, error) {
	byLabel := map[string]*table{}
	byOID := map[uint32]*table{}
	var names []string
	for _, l := range list {
		t, err := readTable(ctx, tx, l)
		if err != nil {
			return nil, err
		}
		if byLabel[t.label] != nil {
			return nil, fmt.Errorf("%w: %s stands there twice", ErrTables, t.label)
		}
		byLabel[t.label], byOID[t.oid] = t, t
		names = append(names, t.label)
	}
	references := map[string][]string{}
	for _, t := range byLabel {
		for _, f := range t.refs {
			if to := byOID[f.to]; to != nil {
				references[t.label] = append(references[t.label], to.label)
			}
		}
	}
	sorted, err := order(names, references)
	if err != nil {
		return nil, err
	}
	width := max(2, len(fmt.Sprint(len(sorted)-1)))
	var tables []*table
	for i, name := range sorted {
		t := byLabel[name]
		t.object = fmt.Sprintf("%0*d.%s", width, i, name)
		if err := objectstore.CheckName(t.object); err != nil || !likeTable(t.object) {
			return nil, fmt.Errorf("%w: the name of %s", ErrTables, t.label)
		}
		for _, f := range t.refs {
			if to := byOID[f.to]; to != nil && to != t {
				to.children = append(to.children, child{t, f})
			}
		}
		tables = append(tables, t)
	}
	return tables, nil
}

func readTable(ctx context.Context, tx querier, l Table) (*table, error) {
	t := &table{owner: quote(l.Owner), column: l.Owner}
	var schema, name, relkind string
	var inherited bool
	err := tx.QueryRow(ctx, `SELECT c.oid, n.nspname::text, c.relname::text, c.relkind::text,
			EXISTS (SELECT FROM pg_inherits i WHERE c.oid IN (i.inhparent, i.inhrelid))
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass($1)`,
		l.Name).Scan(&t.oid, &schema, &name, &relkind, &inherited)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, fmt.Errorf("%w: there is no %s", ErrTables, l.Name)
	case err != nil:
		return nil, fmt.Errorf("look up table %s: %w", l.Name, err)
	case relkind != "p" && (relkind != "r" || inherited):
		return nil, fmt.Errorf("%w: %s is no table, a part of one, or one that others inherit from", ErrTables, l.Name)
	}
	t.label, t.ident = schema+"."+name, quote(schema, name)
	for _, read := range []func(context.Context, querier, Table) error{t.readOwner, t.readKey, t.readForeign, t.readSerial, t.readParts} {
		if err := read(ctx, tx, l); err != nil {
			return nil, fmt.Errorf("table %s: %w", t.label, err)
		}
	}
	return t, nil
}

func (t *table) readOwner(ctx context.Context, tx querier, l Table) error {
	var name string
	var exact bool
	err := tx.QueryRow(ctx, `SELECT coalesce(b.typname, y.typname)::text, coalesce(c.collisdeterministic, true),
			EXISTS (SELECT FROM pg_index i WHERE i.indrelid = a.attrelid AND i.indkey[0] = a.attnum AND i.indpred IS NULL)
		FROM pg_attribute a JOIN pg_type y ON y.oid = a.atttypid LEFT JOIN pg_type b ON b.oid = y.typbasetype AND y.typtype = 'd'
			LEFT JOIN pg_collation c ON c.oid = a.attcollation
		WHERE a.attrelid = $1 AND a.attname = $2 AND a.attnum > 0 AND NOT a.attisdropped`,
		t.oid, l.Owner).Scan(&name, &exact, &t.indexed)
	if errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("%w: no column %q for the owner", ErrTables, l.Owner)
	}
	if err != nil {
		return fmt.Errorf("look up owner column: %w", err)
	}
	switch name {
	case "text", "varchar":
		t.kind = ofText
	case "int2", "int4", "int8":
		t.kind = ofInt
	case "uuid":
		t.kind = ofUUID
	default:
		return fmt.Errorf("%w: the owner column is of type %s, not text, integer or uuid", ErrTables, name)
	}
	if !exact {
		return fmt.Errorf("%w: the owner column takes different texts for equal", ErrTables)
	}
	return nil
}

func (t *table) readKey(ctx context.Context, tx querier, _ Table) error {
	rows, err := tx.Query(ctx, `SELECT a.attname::text, coalesce(b.typname, y.typname)::text, a.attidentity = 'a'
		FROM pg_index i CROSS JOIN unnest(i.indkey) WITH ORDINALITY k (n, at)
			JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.n
			JOIN pg_type y ON y.oid = a.atttypid LEFT JOIN pg_type b ON b.oid = y.typbasetype AND y.typtype = 'd'
		WHERE i.indrelid = $1 AND i.indisprimary AND k.at <= i.indnkeyatts ORDER BY k.at`, t.oid)
	if err != nil {
		return fmt.Errorf("look up primary key: %w", err)
	}
	if t.key, err = pgx.CollectRows(rows, scanColumn); err != nil {
		return fmt.Errorf("look up primary key: %w", err)
	}
	if len(t.key) == 0 {
		return fmt.Errorf("%w: no primary key", ErrTables)
	}
	return nil
}

func (t *table) readForeign(ctx context.Context, tx querier, _ Table) error {
	rows, err := tx.Query(ctx, `SELECT f.confrelid,
			(SELECT array_agg(a.attname::text ORDER BY k.at) FROM unnest(f.conkey) WITH ORDINALITY k (n, at)
				JOIN pg_attribute a ON a.attrelid = f.conrelid AND a.attnum = k.n),
			(SELECT array_agg(a.attname::text ORDER BY k.at) FROM unnest(f.confkey) WITH ORDINALITY k (n, at)
				JOIN pg_attribute a ON a.attrelid = f.confrelid AND a.attnum = k.n)
		FROM pg_constraint f WHERE f.conrelid = $1 AND f.contype = 'f' ORDER BY f.conname`, t.oid)
	if err != nil {
		return fmt.Errorf("look up foreign keys: %w", err)
	}
	t.refs, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (f foreign, err error) {
		err = row.Scan(&f.to, &f.columns, &f.target)
		return f, err
	})
	if err != nil {
		return fmt.Errorf("look up foreign keys: %w", err)
	}
	return nil
}

// readSerial finds the sequences that identity columns have and that defaults
// draw from.
func (t *table) readSerial(ctx context.Context, tx querier, _ Table) error {
	rows, err := tx.Query(ctx, `SELECT DISTINCT a.attname::text, n.nspname::text, s.relname::text
		FROM pg_attribute a JOIN pg_class s ON s.relkind = 'S' JOIN pg_namespace n ON n.oid = s.relnamespace
		WHERE a.attrelid = $1 AND (
			EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = s.oid AND d.deptype = 'i'
				AND d.refclassid = 'pg_class'::regclass AND d.refobjid = a.attrelid AND d.refobjsubid = a.attnum)
			OR EXISTS (SELECT FROM pg_attrdef f JOIN pg_depend d ON d.classid = 'pg_attrdef'::regclass AND d.objid = f.oid
				WHERE f.adrelid = a.attrelid AND f.adnum = a.attnum AND d.refclassid = 'pg_class'::regclass AND d.refobjid = s.oid))
		ORDER BY 1, 2, 3`, t.oid)
	if err != nil {
		return fmt.Errorf("look up sequences: %w", err)
	}
	t.serial, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (s sequence, err error) {
		var schema, name string
		err = row.Scan(&s.column, &schema, &name)
		s.ident = quote(schema, name)
		return s, err
	})
	if err != nil {
		return fmt.Errorf("look up sequences: %w", err)
	}
	return nil
}

func (t *table) readParts(ctx context.Context, tx querier, _ Table) error {
	rows, err := tx.Query(ctx, `SELECT c.oid, n.nspname::text, c.relname::text
		FROM pg_partition_tree($1::oid::regclass) p JOIN pg_class c ON c.oid = p.relid JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.oid <> $1 ORDER BY 2, 3`, t.oid)
	if err != nil {
		return fmt.Errorf("look up partitions: %w", err)
	}
	t.parts, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (p part, err error) {
		var schema, name string
		err = row.Scan(&p.oid, &schema, &name)
		p.ident = quote(schema, name)
		return p, err
	})
	if err != nil {
		return fmt.Errorf("look up partitions: %w", err)
	}
	return nil
}

// list joins what f makes of each column.
func list(columns []column, f func(column) string) string {
	all := make([]string, len(columns))
	for i, c := range columns {
		all[i] = f(c)
	}
	return strings.Join(all, ", ")
}
