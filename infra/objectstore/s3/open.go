package s3

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"

	"penstock/infra/objectstore"
	"penstock/infra/objectstore/manifest"
	"penstock/infra/objectstore/s3/wire"
)

// Store is a bucket, or what lies under a prefix in it, as an object store. It is
// safe for concurrent use.
type Store struct {
	*manifest.Store
	b *bucket
}

var _ objectstore.Store = (*Store)(nil)

// Open connects to a bucket and tries what the service can do, which writes and
// deletes some small objects. ErrOption, or what the service answered.
func Open(ctx context.Context, o Options) (*Store, error) {
	b, err := openBucket(ctx, o)
	if err != nil {
		return nil, err
	}
	return &Store{Store: manifest.New(b, b.o.Manifest), b: b}, nil
}

// Close ends the connections. Nothing may be under way.
func (s *Store) Close() error { return errors.Join(s.Store.Close(), s.b.Close()) }

// bucket is the manifest.Backend.
type bucket struct {
	o       Options
	wire    *wire.Client
	layout  layout
	barrier bool
	buffers *buffers
	partial partial
	turns   turns
}

var _ manifest.Backend = (*bucket)(nil)

func openBucket(ctx context.Context, o Options) (*bucket, error) {
	host, err := o.complete()
	if err != nil {
		return nil, fmt.Errorf("open s3 store: %w", err)
	}
	b := &bucket{o: o, layout: newLayout(o.Prefix), buffers: newBuffers(o.PartSize), turns: newTurns()}
	if b.wire, err = wire.New(wire.Options{
		Host: host, Secure: b.o.Secure, Region: b.o.Region, AccessKey: b.o.AccessKey, SecretKey: b.o.SecretKey,
		SessionToken: b.o.SessionToken, Timeout: b.o.Timeout, Connections: b.o.Connections,
		Attempts: b.o.Attempts, Pause: b.o.Pause, Clock: b.o.Clock, Count: b.o.Count,
	}); err != nil {
		return nil, fmt.Errorf("open s3 store: %w: %w", ErrOption, err)
	}
	if err := b.probe(ctx); err != nil {
		b.wire.Close()
		return nil, fmt.Errorf("open s3 store: bucket %s: %w", o.Bucket, err)
	}
	return b, nil
}

// Capabilities: what the trial has shown, and what services of this kind promise.
func (b *bucket) Capabilities() objectstore.Capabilities {
	return objectstore.Capabilities{Barrier: b.barrier, Durable: true}
}

// Close ends the connections.
func (b *bucket) Close() error {
	b.wire.Close()
	return nil
}

// turns lets one writer of an owner write at a time, where the service keeps
// nobody apart.
type turns struct {
	seed maphash.Seed
	of   []chan struct{}
}

func newTurns() turns {
	t := turns{seed: maphash.MakeSeed(), of: make([]chan struct{}, 64)}
	for i := range t.of {
		t.of[i] = make(chan struct{}, 1)
	}
	return t
}

func (t *turns) take(ctx context.Context, owner string) (release func(), err error) {
	c := t.of[maphash.String(t.seed, owner)%uint64(len(t.of))]
	select {
	case c <- struct{}{}:
		return func() { <-c }, nil
	case <-ctx.Done():
		return nil, errors.Join(ctx.Err())
	}
}
