package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"penstock/infra/objectstore"
)

// chunkSize is how many bytes of an object lie in one row.
const chunkSize = 256 << 10

// loose lists the objects that are no rows.
func (s *Store) loose(ctx context.Context, q querier, owner string) ([]objectstore.Object, error) {
	rows, err := q.Query(ctx, s.sql("SELECT name, blob, size, digest FROM {S}.objects WHERE owner = "+bytea(owner)))
	if err != nil {
		return nil, fmt.Errorf("list objects: %w", err)
	}
	objects, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (o objectstore.Object, err error) {
		var name []byte
		var blob int64
		err = row.Scan(&name, &blob, &o.Size, &o.Digest)
		o.Name, o.Version = string(name), fmt.Sprint(blob)
		return o, err
	})
	if err != nil {
		return nil, fmt.Errorf("list objects: %w", err)
	}
	return objects, nil
}

// sendBlob writes an object that is no rows.
func (s *Store) sendBlob(ctx context.Context, tx pgx.Tx, owner, name string, w io.Writer) error {
	var blob int64
	err := tx.QueryRow(ctx, s.sql("SELECT blob FROM {S}.objects WHERE owner = "+bytea(owner)+" AND name = "+bytea(name))).Scan(&blob)
	if errors.Is(err, pgx.ErrNoRows) {
		return s.missing(ctx, tx, owner, name)
	}
	if err != nil {
		return fmt.Errorf("read object: %w", err)
	}
	rows, err := tx.Query(ctx, s.sql("SELECT data FROM {S}.chunks WHERE blob = $1 ORDER BY n"), blob)
	if err != nil {
		return fmt.Errorf("read object: %w", err)
	}
	var data pgtype.DriverBytes
	_, err = pgx.ForEachRow(rows, []any{&data}, func() error {
		_, err := w.Write(data)
		return err
	})
	if err != nil {
		return fmt.Errorf("read object: %w", err)
	}
	return nil
}

// putBlob creates or replaces an object that is no rows, and returns its version.
// Its bytes are there before the owner is locked.
func (s *Store) putBlob(ctx context.Context, tx pgx.Tx, w writing, name string, in *arrival, digest func() string) (string, error) {
	owner := w.owner
	var blob int64
	if err := tx.QueryRow(ctx, s.sql("SELECT nextval('{S}.blobs')")).Scan(&blob); err != nil {
		return "", fmt.Errorf("write object: %w", err)
	}
	chunk := make([]byte, chunkSize)
	for n, whole := 0, false; !whole; n++ {
		var size int
		var err error
		if size, whole, err = objectstore.Fill(in, chunk); err != nil {
			return "", fmt.Errorf("read object: %w", err)
		}
		if size == 0 {
			break
		}
		if _, err := tx.Exec(ctx, s.sql("INSERT INTO {S}.chunks VALUES ($1, $2, $3)"), blob, n, chunk[:size]); err != nil {
			return "", fmt.Errorf("write object: %w", err)
		}
	}
	if err := s.entering(ctx, tx, w); err != nil {
		return "", err
	}
	if err := s.removeBlob(ctx, tx, owner, name); err != nil {
		return "", err
	}
	_, err := tx.Exec(ctx, s.sql("INSERT INTO {S}.objects VALUES ("+bytea(owner)+", "+bytea(name)+", $1, $2, $3)"), blob, in.size, digest())
	if err != nil {
		return "", fmt.Errorf("write object: %w", err)
	}
	return fmt.Sprint(blob), nil
}

// removeBlob removes an object that is no rows, if it is there; the owner is
// locked.
func (s *Store) removeBlob(ctx context.Context, tx pgx.Tx, owner, name string) error {
	_, err := tx.Exec(ctx, s.sql(`WITH gone AS (DELETE FROM {S}.objects WHERE owner = `+bytea(owner)+` AND name = `+bytea(name)+` RETURNING blob)
		DELETE FROM {S}.chunks WHERE blob IN (SELECT blob FROM gone)`))
	if err != nil {
		return fmt.Errorf("remove object: %w", err)
	}
	return nil
}
