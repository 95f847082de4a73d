package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"penstock/infra/objectstore"
)

const (
	// lockPatience is how long a lock on an owner is waited for at a stretch:
	// behind us in the queue, all who write to the owner wait too.
	lockPatience = 500 * time.Millisecond
	// lockPause is how long they may get on before the next stretch.
	lockPause = 100 * time.Millisecond
)

// state reads the mark of an owner's copy.
func (s *Store) state(ctx context.Context, q querier, owner string) (m objectstore.Mark, err error) {
	var b strings.Builder
	fmt.Fprintf(&b, s.sql(`SELECT coalesce((SELECT mark::text FROM {S}.copies WHERE owner = %[1]s AND NOT gone), ''),
		EXISTS (SELECT FROM {S}.copies WHERE owner = %[1]s AND made) OR EXISTS (SELECT FROM {S}.objects WHERE owner = %[1]s)`), bytea(owner))
	for _, t := range s.tables {
		if t.kind.fits(owner) {
			fmt.Fprintf(&b, " OR EXISTS (SELECT FROM %s t WHERE %s)", t.ident, t.of(owner, "t."))
		}
	}
	var mark string
	var there bool
	if err := q.QueryRow(ctx, b.String()).Scan(&mark, &there); err != nil {
		return m, fmt.Errorf("read mark: %w", err)
	}
	if mark == "" && !there {
		m.State = objectstore.Absent
	}
	return m, decodeMark(mark, &m)
}

func decodeMark(text string, m *objectstore.Mark) error {
	if text == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(text), m); err != nil {
		return fmt.Errorf("read mark: %w: %w", objectstore.ErrCorrupt, err)
	}
	return nil
}

// setMark writes the mark; the owner is locked. Until a copy that is incoming has
// arrived it is remembered where the one before it went.
func (s *Store) setMark(ctx context.Context, q querier, owner string, m objectstore.Mark) error {
	mark := "NULL"
	if m.State != objectstore.Unmarked {
		b, err := json.Marshal(m)
		if err != nil {
			return fmt.Errorf("write mark: %w", err)
		}
		mark = literal(string(b)) + "::jsonb"
	}
	_, err := q.Exec(ctx, fmt.Sprintf(s.sql(`INSERT INTO {S}.copies (owner, mark, made) VALUES (%s, %s, true)
		ON CONFLICT (owner) DO UPDATE SET mark = excluded.mark, made = true, gone = false,
			went = CASE WHEN excluded.mark ->> 'state' <> 'incoming' THEN NULL WHEN copies.mark ->> 'state' = 'retired' THEN copies.mark ELSE copies.went END`),
		bytea(owner), mark))
	if err != nil {
		return fmt.Errorf("write mark: %w", err)
	}
	return nil
}

// left returns the mark of a copy that was moved away and deleted; the zero mark if
// there is none.
func (s *Store) left(ctx context.Context, q querier, owner string) (m objectstore.Mark, err error) {
	var mark string
	err = q.QueryRow(ctx, s.sql("SELECT coalesce((SELECT mark::text FROM {S}.copies WHERE gone AND owner = "+bytea(owner)+"), '')")).Scan(&mark)
	if err != nil {
		return m, fmt.Errorf("read mark: %w", err)
	}
	return m, decodeMark(mark, &m)
}

// change is compare-and-set of the mark; the owner is locked.
func (s *Store) change(ctx context.Context, q querier, owner string, from, to objectstore.Mark) error {
	have, err := s.state(ctx, q, owner)
	if err != nil {
		return err
	}
	if have != from {
		return &objectstore.MarkedError{Owner: owner, Have: have, Want: from}
	}
	return s.setMark(ctx, q, owner, to)
}

// admit returns what the copy is if it may be written to as as; the owner is
// locked.
func (s *Store) admit(ctx context.Context, q querier, owner string, as objectstore.Mark) (objectstore.Mark, error) {
	have, err := s.state(ctx, q, owner)
	if err != nil {
		return have, err
	}
	ok := have == as
	if as == (objectstore.Mark{}) {
		ok = have.Writable() || have.State == objectstore.Absent
	}
	if !ok {
		return have, &objectstore.MarkedError{Owner: owner, Have: have, Want: as}
	}
	return have, nil
}

// pass lets what the transaction writes to the owner's rows through the fence,
// as long as the copy bears exactly this mark. What may be written to needs no
// pass.
func pass(ctx context.Context, q querier, owner string, as objectstore.Mark) error {
	if as == (objectstore.Mark{}) {
		return nil
	}
	b, err := json.Marshal(as)
	if err != nil {
		return fmt.Errorf("pass the fence: %w", err)
	}
	_, err = q.Exec(ctx, "SELECT set_config('penstock.owner', $1, true), set_config('penstock.mark', $2, true)",
		fmt.Sprintf("%x", owner), string(b))
	if err != nil {
		return fmt.Errorf("pass the fence: %w", err)
	}
	return nil
}

// lock keeps everybody else off the owner until the transaction ends. Those who
// write to it now are waited for.
func (s *Store) lock(ctx context.Context, tx pgx.Tx, owner string) error {
	c := tx.Conn().PgConn()
	for {
		_, err := c.Exec(ctx, fmt.Sprintf(s.sql(`SAVEPOINT penstock_lock; SET LOCAL lock_timeout = %d;
			SELECT {S}.close_transaction(%s); SET LOCAL lock_timeout = 0; RELEASE SAVEPOINT penstock_lock`),
			lockPatience.Milliseconds(), bytea(owner))).ReadAll()
		if c := code(err); c != lockNotAvailable && c != deadlockDetected {
			if err != nil {
				err = fmt.Errorf("lock owner: %w", err)
			}
			return err
		}
		if _, err := c.Exec(ctx, `ROLLBACK TO SAVEPOINT penstock_lock; RELEASE SAVEPOINT penstock_lock`).ReadAll(); err != nil {
			return fmt.Errorf("lock owner: %w", err)
		}
		if err := s.o.Clock.Sleep(ctx, lockPause); err != nil {
			return fmt.Errorf("lock owner: %w", err)
		}
	}
}

// Stat reads the mark without waiting for a lock.
func (s *Store) Stat(ctx context.Context, owner string) (m objectstore.Mark, err error) {
	if err := objectstore.CheckOwner(owner); err != nil {
		return m, err
	}
	m, err = s.state(ctx, s.reads, owner)
	return m, ended(ctx, err)
}

// Create makes an empty copy if there is none.
func (s *Store) Create(ctx context.Context, owner string, as objectstore.Mark) error {
	if err := objectstore.CheckOwner(owner); err != nil {
		return err
	}
	return s.writing(ctx, func(tx pgx.Tx) error {
		if err := s.lock(ctx, tx, owner); err != nil {
			return err
		}
		have, err := s.admit(ctx, tx, owner, as)
		if err == nil && have.State == objectstore.Absent {
			err = s.setMark(ctx, tx, owner, objectstore.Mark{})
		}
		return err
	})
}

// Mark changes the mark. Who writes to the owner is waited for.
func (s *Store) Mark(ctx context.Context, owner string, from, to objectstore.Mark) error {
	if err := objectstore.CheckOwner(owner); err != nil {
		return err
	}
	return s.writing(ctx, func(tx pgx.Tx) error {
		if err := s.lock(ctx, tx, owner); err != nil {
			return err
		}
		return s.change(ctx, tx, owner, from, to)
	})
}
