package postgres

import (
	"cmp"
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Uninstall takes the triggers off the tables and removes Penstock's schema from
// a site's database; the rows stay. It is for an operator who wants out, after
// the last mover has ended. While there are marks that keep writers off, or
// objects that are no rows, it removes nothing and returns ErrInUse: without
// marks, copies that were moved away would look live again. With force it
// removes all the same. The marks of copies that were moved away and deleted go in
// any case: from then on who writes to these owners here is no longer sent after
// them, so clients must know by then where to write. The schema defaults to penstock; where there is none,
// nothing is done.
func Uninstall(ctx context.Context, url, schema string, force bool) error {
	schema = cmp.Or(schema, "penstock")
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("uninstall: %w", err)
	}
	defer func() { _ = c.Close(ctx) }()
	return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
		var there bool
		if err := tx.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", quote(schema, "installed")).Scan(&there); err != nil {
			return fmt.Errorf("uninstall: %w", err)
		}
		if !there {
			return nil
		}
		var closed, objects int
		err := tx.QueryRow(ctx, sql(`SELECT (SELECT count(*) FROM {S}.copies WHERE mark ->> 'state' <> 'live' AND NOT gone),
			(SELECT count(*) FROM {S}.objects)`, schema)).Scan(&closed, &objects)
		if err != nil {
			return fmt.Errorf("uninstall: %w", err)
		}
		if !force && closed+objects > 0 {
			return fmt.Errorf("%w: %d copies are retired or incoming, %d objects are no rows", ErrInUse, closed, objects)
		}
		// The triggers go with their functions.
		if _, err := tx.Exec(ctx, sql("DROP SCHEMA {S} CASCADE", schema)); err != nil {
			return fmt.Errorf("uninstall: %w", err)
		}
		return nil
	})
}
