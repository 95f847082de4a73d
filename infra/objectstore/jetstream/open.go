package jetstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"penstock/infra/objectstore/manifest"
)

// Options of a store.
type Options struct {
	// Bucket names the key-value and the object bucket, which are made if they
	// aren't there. Letters, digits, - and _.
	Bucket string
	// Durable says that the server syncs before it acknowledges, which can't be
	// asked of it. The store's Capabilities repeat it.
	Durable bool
	// JS is the connection. It stays the caller's, who closes it after the store.
	JS jetstream.JetStream
	// Manifest are the options of what stands above the buckets. MaxDocument
	// defaults to what the server takes in a message.
	Manifest manifest.Options
	// Replicas of buckets that are made. Defaults to 1.
	Replicas int
}

// Store is a JetStream bucket as an objectstore.Store.
type Store struct {
	*manifest.Store
	line *line
}

// Close ends what goes on in the background, and calls under way. The connection
// stays the caller's. It may be called twice.
func (s *Store) Close() error {
	err := s.Store.Close()
	s.line.close()
	return err
}

var (
	// ErrOptions is returned by Open for options that can't be: no connection, no
	// usable name. Nothing was made.
	ErrOptions = errors.New("unusable options")
	// ErrBucket is returned by Open for a bucket that was made by somebody else and
	// forgets what it is given: messages that age, or that make room for others, or
	// that are kept in memory. It is left as it is.
	ErrBucket = errors.New("the bucket does not keep what it is given")
)

// messageRoom is what a message holds besides its data: subject and headers.
const messageRoom = 8 << 10

// Open opens the buckets, made if need be. Close the store before the connection.
func Open(ctx context.Context, o Options) (*Store, error) {
	if o.JS == nil || o.Bucket == "" {
		return nil, fmt.Errorf("open jetstream store: a connection and a bucket are needed: %w", ErrOptions)
	}
	o.Replicas = cmp.Or(o.Replicas, 1)
	b, err := openBackend(ctx, &o)
	if err != nil {
		return nil, fmt.Errorf("open jetstream store %.80q: %w", o.Bucket, err)
	}
	most := int(o.JS.Conn().MaxPayload()) - messageRoom
	if o.Manifest.MaxDocument == 0 || o.Manifest.MaxDocument > most {
		o.Manifest.MaxDocument = most
	}
	b.line = newLine(o.JS.Conn())
	return &Store{manifest.New(b, o.Manifest), b.line}, nil
}

func openBackend(ctx context.Context, o *Options) (*backend, error) {
	_, err := o.JS.CreateKeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: o.Bucket, Description: "Penstock: what owners have", History: 1,
		Storage: jetstream.FileStorage, Replicas: o.Replicas,
	})
	if err != nil && !errors.Is(err, jetstream.ErrBucketExists) {
		return nil, fmt.Errorf("make key-value bucket: %w", err)
	}
	_, err = o.JS.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{
		Bucket: o.Bucket, Description: "Penstock: owners' data", Storage: jetstream.FileStorage, Replicas: o.Replicas,
	})
	if err != nil && !errors.Is(err, jetstream.ErrBucketExists) {
		return nil, fmt.Errorf("make object bucket: %w", err)
	}
	b := &backend{bucket: o.Bucket, js: o.JS, durable: o.Durable}
	if _, err = leaderReads(ctx, o.JS, "KV_"+o.Bucket); err != nil {
		return nil, err
	}
	if b.kv, err = o.JS.KeyValue(ctx, o.Bucket); err != nil {
		return nil, fmt.Errorf("key-value bucket: %w", err)
	}
	if b.stream, err = leaderReads(ctx, o.JS, "OBJ_"+o.Bucket); err != nil {
		return nil, err
	}
	if b.objects, err = o.JS.ObjectStore(ctx, o.Bucket); err != nil {
		return nil, fmt.Errorf("object bucket: %w", err)
	}
	b.chunk = min(chunkSize, int(o.JS.Conn().MaxPayload())/2)
	return b, nil
}

// keeps makes sure that a stream loses nothing by itself: a document or a chunk
// that aged would be an owner's data gone.
func keeps(c *jetstream.StreamConfig) error {
	switch {
	case c.MaxAge > 0:
		return fmt.Errorf("%w: messages are dropped after %s", ErrBucket, c.MaxAge)
	case c.Discard == jetstream.DiscardOld && (c.MaxBytes > 0 || c.MaxMsgs > 0):
		return fmt.Errorf("%w: old messages make room for new ones", ErrBucket)
	case c.Storage == jetstream.MemoryStorage:
		return fmt.Errorf("%w: it is in the server's memory", ErrBucket)
	}
	return nil
}

// leaderReads has a stream's reads answered by its leader: with several replicas
// it must allow no direct ones.
func leaderReads(ctx context.Context, js jetstream.JetStream, name string) (jetstream.Stream, error) {
	s, err := js.Stream(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("stream %s: %w", name, err)
	}
	c := s.CachedInfo().Config
	if err := keeps(&c); err != nil {
		return nil, fmt.Errorf("stream %s: %w", name, err)
	}
	if c.Replicas <= 1 || !c.AllowDirect {
		return s, nil
	}
	c.AllowDirect = false
	if s, err = js.UpdateStream(ctx, c); err != nil {
		return nil, fmt.Errorf("stream %s: read from its leader: %w", name, err)
	}
	return s, nil
}
