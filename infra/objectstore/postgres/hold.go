package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"penstock/infra/objectstore"
)

// releasePatience is how long the server may take to confirm a release, before
// the connection is closed, which is one too.
const releasePatience = 5 * time.Second

// batch is how many rows are deleted in one transaction.
const batch = 10_000

// held is a session that has an owner's lock. Unlike a transaction's, it outlasts
// what is committed under it: a fence is durable while nobody can write yet.
type held struct {
	s     *Store
	owner string
	conn  *pgxpool.Conn // nil when released
}

// Hold takes the owner's lock in a session of its own. It goes with the session.
func (s *Store) Hold(ctx context.Context, owner, version string) (objectstore.Held, error) {
	h, err := s.hold(ctx, owner)
	if err != nil {
		return nil, err
	}
	l, err := s.look(ctx, h.conn, owner)
	if err == nil && version != "" && l.version() != version {
		err = fmt.Errorf("owner %.80q: %w", owner, objectstore.ErrChanged)
	}
	if err != nil {
		h.Release()
		return nil, ended(ctx, err)
	}
	return h, nil
}

func (s *Store) hold(ctx context.Context, owner string) (*held, error) {
	if err := objectstore.CheckOwner(owner); err != nil {
		return nil, err
	}
	conn, err := s.holds.Acquire(ctx)
	if err != nil {
		return nil, ended(ctx, fmt.Errorf("hold: %w", err))
	}
	h := &held{s: s, owner: owner, conn: conn}
	for {
		_, err := conn.Conn().PgConn().Exec(ctx, fmt.Sprintf(s.sql("SET lock_timeout = %d; SELECT {S}.close_session(%s)"),
			lockPatience.Milliseconds(), bytea(owner))).ReadAll()
		if err == nil {
			_, err = conn.Exec(ctx, "SET lock_timeout = 0")
		}
		if err == nil {
			return h, nil
		}
		if c := code(err); c != lockNotAvailable && c != deadlockDetected {
			h.Release()
			return nil, ended(ctx, fmt.Errorf("hold: %w", err))
		}
		// Half of the locks may be ours already.
		if _, err := conn.Exec(ctx, "SELECT pg_advisory_unlock_all()"); err != nil {
			h.Release()
			return nil, ended(ctx, fmt.Errorf("hold: %w", err))
		}
		if err := s.o.Clock.Sleep(ctx, lockPause); err != nil {
			h.Release()
			return nil, fmt.Errorf("hold: %w", err)
		}
	}
}

// within runs fn in a transaction of the session that has the lock: if the lock
// is gone, so is the session, and nothing is done.
func (h *held) within(ctx context.Context, fn func(tx pgx.Tx) error) error {
	if h.conn == nil {
		return fmt.Errorf("owner %.80q: released: %w", h.owner, objectstore.ErrHoldLost)
	}
	err := ended(ctx, pgx.BeginFunc(ctx, h.conn, fn))
	if err != nil && h.conn.Conn().IsClosed() {
		err = fmt.Errorf("owner %.80q: %w: %w", h.owner, objectstore.ErrHoldLost, err)
	}
	return err
}

// Mark changes the mark, durably, while the lock is kept.
func (h *held) Mark(ctx context.Context, from, to objectstore.Mark) error {
	return h.within(ctx, func(tx pgx.Tx) error { return h.s.change(ctx, tx, h.owner, from, to) })
}

// Delete removes the owner's rows, those that refer to others first, and the
// mark at last. ErrTables if a table that isn't configured refers to these: it may
// have come since Open, and its rows would go, too.
func (h *held) Delete(ctx context.Context, as objectstore.Mark) error {
	s := h.s
	if err := h.within(ctx, func(tx pgx.Tx) error { return referredFromOutside(ctx, tx, s.tables) }); err != nil {
		return err
	}
	for i := len(s.tables) - 1; i >= 0; i-- {
		t := s.tables[i]
		rows := fmt.Sprintf("DELETE FROM %s t WHERE %s", t.ident, t.of(h.owner, "t."))
		if !t.refersToItself() {
			// Rows that refer to each other must go at once; others need not, and
			// a large owner is no large transaction.
			rows += fmt.Sprintf(" AND (%s) IN (SELECT %s FROM %s b WHERE %s LIMIT %d)",
				list(t.key, func(c column) string { return "t." + c.ident() }),
				list(t.key, func(c column) string { return "b." + c.ident() }), t.ident, t.of(h.owner, "b."), batch)
		}
		for more := t.kind.fits(h.owner); more; {
			err := h.deleting(ctx, as, func(tx pgx.Tx) error {
				tag, err := tx.Exec(ctx, rows)
				more = tag.RowsAffected() >= batch
				return err
			})
			if err != nil {
				return fmt.Errorf("delete rows of %s: %w", t.label, err)
			}
		}
	}
	return h.deleting(ctx, as, func(tx pgx.Tx) error {
		owner := bytea(h.owner)
		// Clients who have not heard are still sent after what has moved away. What
		// never arrived leaves things as they were.
		stays := "false"
		switch as.State {
		case objectstore.Retired:
			stays = "true"
		case objectstore.Incoming:
			stays = "went IS NOT NULL"
		}
		for _, text := range []string{
			"DELETE FROM {S}.chunks WHERE blob IN (SELECT blob FROM {S}.objects WHERE owner = " + owner + ")",
			"DELETE FROM {S}.objects WHERE owner = " + owner,
			"DELETE FROM {S}.changes WHERE owner = " + owner,
			"DELETE FROM {S}.copies WHERE NOT (" + stays + ") AND owner = " + owner,
			"UPDATE {S}.copies SET mark = coalesce(went, mark), went = NULL, made = false, gone = true WHERE owner = " + owner,
		} {
			if _, err := tx.Exec(ctx, s.sql(text)); err != nil {
				return fmt.Errorf("delete owner: %w", err)
			}
		}
		return nil
	})
}

// deleting runs one transaction of a deletion.
func (h *held) deleting(ctx context.Context, as objectstore.Mark, fn func(tx pgx.Tx) error) error {
	return h.within(ctx, func(tx pgx.Tx) error {
		if _, err := h.s.admit(ctx, tx, h.owner, as); err != nil {
			return err
		}
		if err := h.s.asMover(ctx, tx, h.owner, as); err != nil {
			return err
		}
		return fn(tx)
	})
}

// asMover prepares a transaction for writing to an owner's rows.
func (s *Store) asMover(ctx context.Context, tx pgx.Tx, owner string, as objectstore.Mark) error {
	if s.o.SkipTriggers {
		if _, err := tx.Exec(ctx, "SET LOCAL session_replication_role = replica"); err != nil {
			return fmt.Errorf("skip triggers: %w", err)
		}
	}
	return pass(ctx, tx, owner, as)
}

// Release gives the locks back. If the server doesn't confirm it, the session is
// ended.
func (h *held) Release() {
	if h.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), releasePatience)
	defer cancel()
	if _, err := h.conn.Exec(ctx, "SELECT pg_advisory_unlock_all()"); err != nil {
		_ = h.conn.Conn().Close(ctx)
	}
	h.conn.Release()
	h.conn = nil
}

// Delete removes the owner's copy under its lock, in several transactions if it
// is large: if one fails, the mark is still there.
func (s *Store) Delete(ctx context.Context, owner string, as objectstore.Mark) error {
	h, err := s.Hold(ctx, owner, "")
	if errors.Is(err, objectstore.ErrNoOwner) {
		return nil
	}
	if err != nil {
		return err
	}
	defer h.Release()
	return h.Delete(ctx, as)
}
