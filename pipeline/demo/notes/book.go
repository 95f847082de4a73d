package notes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"penstock/infra/objectstore"
)

// File is the object that holds a notebook: one record a note.
const File = "notes"

// Note is what somebody wrote into a notebook.
type Note struct {
	ID   string `json:"id"` // the writer's own, unique
	By   string `json:"by"`
	Text string `json:"text"`
}

// Store is what notebooks are kept in.
type Store interface {
	objectstore.Records
	Stat(ctx context.Context, owner string) (objectstore.Mark, error)
}

// Create makes an empty notebook if there is none.
func Create(ctx context.Context, s Store, owner string) error {
	_, err := s.AppendAll(ctx, owner, File, nil)
	return err
}

// Write appends a note and returns its number in the notebook, from 1. When it
// returns nil the note is as durable as the store promises, and there once.
// ErrNoOwner, *MarkedError.
func Write(ctx context.Context, s Store, owner string, n Note) (uint64, error) {
	if err := writable(ctx, s, owner); err != nil {
		return 0, err
	}
	payload, err := json.Marshal(n)
	if err != nil {
		return 0, fmt.Errorf("write note: %w", err)
	}
	for {
		last, _, err := s.Tail(ctx, owner, File)
		if err != nil {
			return 0, err
		}
		done, err := s.AppendAll(ctx, owner, File, []objectstore.Record{{Number: last + 1, Payload: payload}})
		if err != nil {
			return 0, err
		}
		if done == 1 {
			return last + 1, nil
		}
		// Another writer took the number: after it comes the next.
		if err := ctx.Err(); err != nil {
			return 0, fmt.Errorf("write note: %w", err)
		}
	}
}

// Read returns the last notes of a notebook that may be written to, and how many
// there are in all. ErrNoOwner, *MarkedError.
func Read(ctx context.Context, s Store, owner string, last int) ([]Note, int, error) {
	// All that was acknowledged anywhere before this is in this copy; what is
	// written elsewhere once it is retired, a moment from now, comes after the read.
	if err := writable(ctx, s, owner); err != nil {
		return nil, 0, err
	}
	all, err := All(ctx, s, owner)
	if err != nil {
		return nil, 0, err
	}
	return all[max(len(all)-last, 0):], len(all), nil
}

// All returns the notes of a notebook, whatever the mark of the copy. ErrNoOwner.
func All(ctx context.Context, s objectstore.Records, owner string) ([]Note, error) {
	var out []Note
	err := s.Scan(ctx, owner, File, func(_ uint64, payload []byte) error {
		var n Note
		if err := json.Unmarshal(payload, &n); err != nil {
			return fmt.Errorf("note %d: %w", len(out)+1, err)
		}
		out = append(out, n)
		return nil
	})
	// An unfinished note at the end is being written, and not acknowledged yet.
	if errors.Is(err, objectstore.ErrNoObject) || errors.Is(err, objectstore.ErrTorn) {
		err = nil
	}
	return out, err
}

// writable returns an error unless the owner's copy may be written to.
func writable(ctx context.Context, s Store, owner string) error {
	m, err := s.Stat(ctx, owner)
	switch {
	case err != nil:
		return err
	case m.State == objectstore.Absent:
		return fmt.Errorf("notebook of %.80q: %w", owner, objectstore.ErrNoOwner)
	case !m.Writable():
		return &objectstore.MarkedError{Owner: owner, Have: m}
	}
	return nil
}
