package manifest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"penstock/infra/objectstore"
)

// errAbsent is returned when a copy is to be marked absent.
var errAbsent = errors.New("a copy becomes absent by Delete alone")

// Create writes a document without objects if there is none.
func (s *Store) Create(ctx context.Context, owner string, as objectstore.Mark) error {
	return s.change(ctx, owner, newID(), nil, func(d *document) (bool, error) {
		fresh := d.absent()
		return fresh, d.admit(owner, as)
	})
}

// Mark changes the mark in the document. Where a copy begins to arrive, what
// crashes left of earlier ones is collected.
func (s *Store) Mark(ctx context.Context, owner string, from, to objectstore.Mark) error {
	if err := objectstore.CheckOwner(owner); err != nil {
		return err
	}
	if to.State == objectstore.Absent {
		return errAbsent
	}
	var left []string
	var first *snapshot
	if to.State == objectstore.Incoming {
		d, err := s.load(ctx, owner)
		if err != nil {
			return err
		}
		if d.Mark != from {
			return &objectstore.MarkedError{Owner: owner, Have: d.Mark, Want: from}
		}
		if left, err = s.blobs(ctx, owner, time.Time{}); err != nil {
			return err
		}
		first = &d
	}
	var condemned []string
	err := s.change(ctx, owner, newID(), first, func(d *document) (bool, error) {
		if err := d.mark(owner, from, to); err != nil {
			return false, err
		}
		d.condemn(left)
		condemned = d.Condemned
		return true, nil
	})
	if err != nil {
		return err
	}
	s.collector.sentence(s, owner, condemned, 0)
	return nil
}

func (d *document) mark(owner string, from, to objectstore.Mark) error {
	if d.Mark != from {
		return &objectstore.MarkedError{Owner: owner, Have: d.Mark, Want: from}
	}
	if d.absent() {
		d.begin(to)
	}
	d.Mark = to
	return nil
}

// Delete makes the document that of an absent copy, which also condemns the
// blobs, and then deletes them, those too that crashes left.
func (s *Store) Delete(ctx context.Context, owner string, as objectstore.Mark) error {
	if err := objectstore.CheckOwner(owner); err != nil {
		return err
	}
	left, err := s.blobs(ctx, owner, time.Time{})
	if err != nil {
		return err
	}
	var condemned []string
	err = s.change(ctx, owner, newID(), nil, func(d *document) (write bool, err error) {
		write, err = d.remove(owner, as, left)
		condemned = d.Condemned
		return write, err
	})
	if err != nil {
		return err
	}
	return s.execute(ctx, owner, condemned)
}

// remove ends the copy and condemns all that is left. Of a copy that is absent
// already only leftovers are condemned, so that a deletion that was cut off can
// be repeated.
func (d *document) remove(owner string, as objectstore.Mark, left []string) (write bool, err error) {
	if d.absent() {
		return d.condemn(left), nil
	}
	if d.Mark != as {
		return false, &objectstore.MarkedError{Owner: owner, Have: d.Mark, Want: as}
	}
	d.end()
	d.condemn(left)
	return true, nil
}

// blobs lists an owner's blobs that were last changed before an instant; zero is
// any.
func (s *Store) blobs(ctx context.Context, owner string, before time.Time) ([]string, error) {
	var out []string
	err := s.b.Blobs(ctx, owner, func(id string, modified time.Time) error {
		if before.IsZero() || modified.Before(before) {
			out = append(out, id)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list blobs of %.80q: %w", owner, cause(ctx, err))
	}
	return out, nil
}
