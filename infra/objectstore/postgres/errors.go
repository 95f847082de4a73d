package postgres

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"penstock/infra/objectstore"
)

var (
	// ErrTables is returned by Open for tables that can't be moved: one that isn't
	// there or has no primary key, an owner column of another type than text,
	// integer or uuid, foreign keys that go round in a circle, or that come from a
	// table that isn't configured. The error names them. Nothing was installed. A
	// deletion returns it, and deletes nothing, if such a foreign key came later.
	ErrTables = errors.New("these tables can't be moved")
	// ErrDatabase is returned by Open for a database that can't hold owners of
	// any name (its encoding isn't UTF-8), or whose version is too old. Nothing
	// was installed.
	ErrDatabase = errors.New("this database can't be a store")
	// ErrRows is returned by Put for what isn't rows of the table: another
	// format, other columns than the table's, another owner's rows. Nothing was
	// changed. It comes with objectstore.ErrUnfit.
	ErrRows = errors.New("not rows of this table")
	// ErrTaken is wrapped when a row to be written has a key that a row of
	// another owner has at this site. Keys must be unique over all sites. Nothing
	// was changed. It comes with objectstore.ErrUnfit.
	ErrTaken = errors.New("another row has this key here")
	// ErrInUse is returned by Uninstall while the schema holds what would be lost
	// with it: marks that keep writers off, or objects that are no tables'.
	ErrInUse = errors.New("the store is in use")
)

// Fenced is the SQLSTATE of a write that was refused because the owner's copy
// may not be written to. The message says so in words; the detail is the copy's
// mark as JSON, whose "site" is where the data went.
const Fenced = "PS001"

// Truncated is the SQLSTATE of a TRUNCATE of a table that holds owners' rows.
// It can't be told whose they are, so it is refused.
const Truncated = "PS002"

// Moved reports whether a write through SQL was refused because of the owner's
// mark, and returns that mark: if it is retired, its Site is where to write
// instead; if it is incoming, the data is about to arrive here.
func Moved(err error) (objectstore.Mark, bool) {
	var m objectstore.Mark
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.Code != Fenced {
		return m, false
	}
	return m, json.Unmarshal([]byte(pg.Detail), &m) == nil
}

// code returns the SQLSTATE of an error, empty if it has none.
func code(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

// unfit makes it show in an error of writing rows that to try again won't help:
// they are no rows of the table, or its constraints, its types or its triggers
// refuse them.
func unfit(err error) error {
	var pg *pgconn.PgError
	switch {
	case err == nil, errors.Is(err, objectstore.ErrUnfit):
		return err
	case errors.Is(err, ErrRows):
		return fmt.Errorf("%w: %w", objectstore.ErrUnfit, err)
	case !errors.As(err, &pg):
		return err
	case pg.Code == foreignKeyViolation, pg.Code == uniqueViolation:
		// The detail says which key; of others it may be all of a row.
		return fmt.Errorf("%w: %w: %s", objectstore.ErrUnfit, err, pg.Detail)
	case slices.Contains(refusals, pg.Code[:min(2, len(pg.Code))]), pg.Code == raised:
		return fmt.Errorf("%w: %w", objectstore.ErrUnfit, err)
	default:
		return err
	}
}

// refusals are classes of SQLSTATEs: values that a type doesn't have, constraints
// that are violated, limits of the server.
var refusals = []string{"22", "23", "54"}

// SQLSTATEs that are told apart.
const (
	foreignKeyViolation = "23503"
	uniqueViolation     = "23505"
	noPrivilege         = "42501"
	lockNotAvailable    = "55P03"
	deadlockDetected    = "40P01"
	raised              = "P0001" // by a trigger of the operator's
)
