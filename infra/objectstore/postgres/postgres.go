package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"penstock/infra/clock"
	"penstock/infra/objectstore"
)

// Table is a table in which owners have rows.
type Table struct {
	// Name is the table's, with its schema if it isn't on the search path, and
	// quoted where SQL would need it.
	Name string
	// Owner is the column that says whose a row is: of type text, integer or
	// uuid. Rows in which it is null belong to nobody and are left alone.
	Owner string
}

// Options of a store.
type Options struct {
	// Clock paces repeated tries to get a lock. Defaults to the machine's.
	Clock clock.Clock
	// Connections bounds how many are open for reading, for writing, and for
	// barriers: as many of each. Defaults to 4, as many as a mover has moves.
	Connections int
	Logger      zerolog.Logger
	// Schema is where Penstock keeps its own tables. Defaults to penstock.
	Schema string
	// SkipTriggers keeps the tables' own triggers, and their checks of foreign
	// keys, from running on what a mover writes: for tables whose triggers change
	// what is written. The role must be allowed to set session_replication_role.
	SkipTriggers bool
	// Tables are those that hold the owners' rows.
	Tables []Table
	// URL is of the site's database, directly: a barrier is a session's, which a
	// pooler between would take apart.
	URL string
}

// Store is one site's database as an object store. It implements
// objectstore.Store. Close it.
type Store struct {
	o       Options
	tables  []*table
	byName  map[string]*table
	durable bool
	// Three pools, so that those who wait for a barrier can't take the connection
	// that its holder needs to get on.
	reads, writes, holds *pgxpool.Pool

	mu    sync.Mutex
	sizes map[sizeKey]size
}

var _ objectstore.Store = (*Store)(nil)

// querier is a connection or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// session makes what the server writes depend on nothing but the data: the same
// values have the same text everywhere.
var session = map[string]string{
	"application_name":                    "penstock",
	"client_encoding":                     "UTF8",
	"standard_conforming_strings":         "on",
	"DateStyle":                           "ISO, YMD",
	"IntervalStyle":                       "postgres",
	"TimeZone":                            "UTC",
	"bytea_output":                        "hex",
	"extra_float_digits":                  "3",
	"lc_monetary":                         "C",
	"xmloption":                           "content",
	"default_transaction_isolation":       "read committed",
	"default_transaction_read_only":       "off",
	"row_security":                        "off", // an error rather than half of the rows
	"synchronous_commit":                  "on",
	"work_mem":                            "32MB",
	"statement_timeout":                   "0",
	"lock_timeout":                        "0",
	"idle_in_transaction_session_timeout": "0",
	"tcp_keepalives_idle":                 "10", // a machine that died must not hold a barrier for hours
	"tcp_keepalives_interval":             "5",
	"tcp_keepalives_count":                "3",
}

// Open connects to the database, installs Penstock's schema and the triggers on
// the tables where they are missing, and returns the store. ErrTables,
// ErrDatabase.
func Open(ctx context.Context, o Options) (*Store, error) {
	o.Schema = cmp.Or(o.Schema, "penstock")
	o.Connections = cmp.Or(o.Connections, 4)
	if strings.Trim(o.Schema, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
		return nil, fmt.Errorf("open store: %w: schema %q: small letters, digits and underlines will do", ErrDatabase, o.Schema)
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	s := &Store{o: o, byName: map[string]*table{}, sizes: map[sizeKey]size{}}
	config, err := pgxpool.ParseConfig(o.URL)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	config.MaxConns, config.MinConns = int32(max(1, o.Connections)), 0
	config.MaxConnIdleTime = time.Minute
	// Most statements are made for one owner: keeping them would only fill the
	// memory of the server.
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	for name, value := range session {
		config.ConnConfig.RuntimeParams[name] = value
	}
	for _, pool := range []**pgxpool.Pool{&s.reads, &s.writes, &s.holds} {
		if *pool, err = pgxpool.NewWithConfig(ctx, config.Copy()); err != nil {
			_ = s.Close()
			return nil, fmt.Errorf("open store: %w", err)
		}
	}
	if err := s.prepare(ctx); err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("open store: %w", err)
	}
	return s, nil
}

func (s *Store) prepare(ctx context.Context) error {
	c, err := s.writes.Acquire(ctx)
	if err != nil {
		return err
	}
	defer c.Release()
	var encoding string
	var version int
	err = c.QueryRow(ctx, `SELECT current_setting('server_encoding'), current_setting('server_version_num')::int,
		current_setting('fsync') = 'on'`).Scan(&encoding, &version, &s.durable)
	switch {
	case err != nil:
		return err
	case encoding != "UTF8":
		return fmt.Errorf("%w: its encoding is %s, not UTF8", ErrDatabase, encoding)
	case version < 130000:
		return fmt.Errorf("%w: its version is %d, older than 13", ErrDatabase, version/10000)
	}
	if s.tables, err = readTables(ctx, c, s.o.Tables); err != nil {
		return err
	}
	if err := referredFromOutside(ctx, c, s.tables); err != nil {
		return err
	}
	for _, t := range s.tables {
		s.byName[t.object] = t
		if err := s.warn(ctx, c, t); err != nil {
			return err
		}
	}
	return install(ctx, c.Conn(), s.o.Schema, s.tables)
}

// Close closes all connections. Barriers are to be released before.
func (s *Store) Close() error {
	for _, pool := range []*pgxpool.Pool{s.reads, s.writes, s.holds} {
		if pool != nil {
			pool.Close()
		}
	}
	return nil
}

// Capabilities are a barrier, and durability unless the server writes nothing
// through to its disk.
func (s *Store) Capabilities() objectstore.Capabilities {
	return objectstore.Capabilities{Barrier: true, Durable: s.durable}
}

// sql fills the schema in.
func (s *Store) sql(text string) string { return sql(text, s.o.Schema) }

// bytea is a string as an SQL value of type bytea.
func bytea(owner string) string { return fmt.Sprintf(`'\x%x'::bytea`, owner) }

// table returns the table behind an object's name; nil if the object is none.
func (s *Store) table(name string) (*table, error) {
	if err := objectstore.CheckName(name); err != nil {
		return nil, err
	}
	return s.byName[name], nil
}

// reading runs fn on a snapshot of the database.
func (s *Store) reading(ctx context.Context, fn func(tx pgx.Tx) error) error {
	o := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	return ended(ctx, pgx.BeginTxFunc(ctx, s.reads, o, fn))
}

// writing runs fn in a transaction.
func (s *Store) writing(ctx context.Context, fn func(tx pgx.Tx) error) error {
	return ended(ctx, pgx.BeginFunc(ctx, s.writes, fn))
}

// ended makes the end of the context show in an error that it caused.
func ended(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil || errors.Is(err, ctx.Err()) {
		return err
	}
	return fmt.Errorf("%w: %w", ctx.Err(), err)
}
