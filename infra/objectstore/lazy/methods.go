package lazy

import (
	"context"
	"io"

	"penstock/infra/objectstore"
)

// Capabilities are those of the store once it is open, none before: nothing is
// promised of a store that nobody has reached.
func (s *Store) Capabilities() objectstore.Capabilities {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		return objectstore.Capabilities{}
	}
	return s.open.Capabilities()
}

// Owners is objectstore.Store's.
func (s *Store) Owners(ctx context.Context, fn func(owner string, m objectstore.Mark) error) error {
	o, err := s.get(ctx)
	if err != nil {
		return err
	}
	return o.Owners(ctx, fn)
}

// Stat is objectstore.Store's.
func (s *Store) Stat(ctx context.Context, owner string) (objectstore.Mark, error) {
	o, err := s.get(ctx)
	if err != nil {
		return objectstore.Mark{}, err
	}
	return o.Stat(ctx, owner)
}

// List is objectstore.Store's.
func (s *Store) List(ctx context.Context, owner string) (objectstore.Listing, error) {
	o, err := s.get(ctx)
	if err != nil {
		return objectstore.Listing{}, err
	}
	return o.List(ctx, owner)
}

// Open is objectstore.Store's.
func (s *Store) Open(ctx context.Context, owner, name string) (io.ReadCloser, error) {
	o, err := s.get(ctx)
	if err != nil {
		return nil, err
	}
	return o.Open(ctx, owner, name)
}

// Digest is objectstore.Store's.
func (s *Store) Digest(ctx context.Context, owner, name string) (string, error) {
	o, err := s.get(ctx)
	if err != nil {
		return "", err
	}
	return o.Digest(ctx, owner, name)
}

// Create is objectstore.Store's.
func (s *Store) Create(ctx context.Context, owner string, as objectstore.Mark) error {
	o, err := s.get(ctx)
	if err != nil {
		return err
	}
	return o.Create(ctx, owner, as)
}

// Put is objectstore.Store's.
func (s *Store) Put(ctx context.Context, owner, name string, r io.Reader, as objectstore.Mark) (objectstore.Object, error) {
	o, err := s.get(ctx)
	if err != nil {
		return objectstore.Object{}, err
	}
	return o.Put(ctx, owner, name, r, as)
}

// Remove is objectstore.Store's.
func (s *Store) Remove(ctx context.Context, owner, name string, as objectstore.Mark) error {
	o, err := s.get(ctx)
	if err != nil {
		return err
	}
	return o.Remove(ctx, owner, name, as)
}

// Mark is objectstore.Store's.
func (s *Store) Mark(ctx context.Context, owner string, from, to objectstore.Mark) error {
	o, err := s.get(ctx)
	if err != nil {
		return err
	}
	return o.Mark(ctx, owner, from, to)
}

// Delete is objectstore.Store's.
func (s *Store) Delete(ctx context.Context, owner string, as objectstore.Mark) error {
	o, err := s.get(ctx)
	if err != nil {
		return err
	}
	return o.Delete(ctx, owner, as)
}

// Hold is objectstore.Store's.
func (s *Store) Hold(ctx context.Context, owner, version string) (objectstore.Held, error) {
	o, err := s.get(ctx)
	if err != nil {
		return nil, err
	}
	return o.Hold(ctx, owner, version)
}
