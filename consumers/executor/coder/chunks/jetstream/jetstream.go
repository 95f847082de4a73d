package jetstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"penstock/consumers/executor/coder/chunks"
	"penstock/infra/clock"
)

const (
	// pieceSize is how many bytes a message holds at most.
	pieceSize = 512 << 10
	// ahead is how many pieces of a blob are on their way at a time.
	ahead = 4
	// room is what a message holds besides its data: subject and headers.
	room = 8 << 10
)

// Options of a store.
type Options struct {
	// Name is the store's in the configuration.
	Name string
	// Bucket names the stream, which is made if it isn't there. Letters, digits, - and _.
	Bucket string
	// JS is the connection. It stays the caller's, who closes it after the store.
	JS jetstream.JetStream
	// Replicas of a stream that is made. Defaults to 1.
	Replicas int
	// Timeout is how long the server may be silent. Defaults to 10 s.
	Timeout time.Duration
	// Late is how long after the end of a Put that got no answer the server may still carry
	// it out. Defaults to chunks.DefaultLate.
	Late time.Duration
	// Clock tells how old a listing is. Defaults to the machine's.
	Clock clock.Clock
	// Count is called with a reason: "pieces-left". Defaults to nothing.
	Count func(reason string, n int64)
}

// Store is a stream of blobs.
type Store struct {
	o       Options
	name    string // of the stream
	root    string // of its subjects
	stream  jetstream.Stream
	piece   int // bytes
	buffers sync.Pool
	seen    lastSeen
	tidying sync.WaitGroup
}

var (
	_ chunks.Tidier = (*Store)(nil)
	_ chunks.Late   = (*Store)(nil)
)

var bucketName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,100}$`)

// Open opens the stream, made if need be.
func Open(ctx context.Context, o Options) (*Store, error) {
	if o.JS == nil || o.Name == "" || !bucketName.MatchString(o.Bucket) {
		return nil, fmt.Errorf("store %s: a name, a connection and a bucket are needed, not %.80q: %w", o.Name, o.Bucket, ErrOption)
	}
	o.Replicas = cmp.Or(o.Replicas, 1)
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	o.Late = cmp.Or(o.Late, chunks.DefaultLate)
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	if o.Count == nil {
		o.Count = func(string, int64) {}
	}
	s := &Store{o: o, name: "CHUNKS_" + o.Bucket, root: "$CHUNKS." + o.Bucket}
	if s.piece = min(pieceSize, int(o.JS.Conn().MaxPayload())-room); s.piece < 1 {
		return nil, fmt.Errorf("store %s: messages of %d bytes are too small: %w", o.Name, o.JS.Conn().MaxPayload(), ErrOption)
	}
	s.buffers.New = func() any { b := make([]byte, s.piece); return &b }
	if err := s.open(ctx); err != nil {
		return nil, fmt.Errorf("store %s: stream %s: %w", o.Name, s.name, err)
	}
	return s, nil
}

func (s *Store) open(ctx context.Context) (err error) {
	s.stream, err = s.o.JS.Stream(ctx, s.name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		s.stream, err = s.o.JS.CreateStream(ctx, jetstream.StreamConfig{
			Name: s.name, Description: "Penstock: blobs of a coder", Subjects: []string{s.root + ".>"},
			Storage: jetstream.FileStorage, Replicas: s.o.Replicas, Discard: jetstream.DiscardNew,
			AllowRollup: true, AllowDirect: s.o.Replicas == 1,
		})
	}
	if err != nil {
		return err
	}
	c := s.stream.CachedInfo().Config
	switch {
	case c.MaxAge > 0:
		return fmt.Errorf("%w: messages are dropped after %s", ErrBucket, c.MaxAge)
	case c.Discard == jetstream.DiscardOld && (c.MaxBytes > 0 || c.MaxMsgs > 0), c.MaxMsgsPerSubject > 0:
		return fmt.Errorf("%w: old messages make room for new ones", ErrBucket)
	case c.Storage == jetstream.MemoryStorage:
		return fmt.Errorf("%w: it is in the server's memory", ErrBucket)
	case !c.AllowRollup || c.DenyDelete || c.DenyPurge:
		return fmt.Errorf("%w: blobs could not be replaced or deleted", ErrBucket)
	case c.Replicas > 1 && c.AllowDirect:
		return fmt.Errorf("%w: reads would not see all writes (allow_direct with %d replicas)", ErrBucket, c.Replicas)
	}
	return nil
}

// Close waits for what is being tidied up, which the timeout bounds. Nothing may be under
// way.
func (s *Store) Close() error {
	s.tidying.Wait()
	return nil
}

// Name implements chunks.Store.
func (s *Store) Name() string { return s.o.Name }

// toSubject and toKey: what stands for what in subjects.
var toSubject, toKey = strings.NewReplacer("/", ".", ".", "~"), strings.NewReplacer(".", "/", "~", ".")

// Late implements chunks.Late.
func (s *Store) Late() time.Duration { return s.o.Late }

func (s *Store) subjectOf(key string) string { return s.root + ".b." + toSubject.Replace(key) }

func (s *Store) piecesOf(id string) string { return s.root + ".c." + id }

// within bounds a call by the time that the server may be silent.
func (s *Store) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.o.Timeout)
}

// ended is the caller's context's error, where that is what ended a call.
func ended(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// Delete implements chunks.Store.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := chunks.CheckKey(key); err != nil {
		return err
	}
	if err := s.delete(ctx, key); err != nil {
		return fmt.Errorf("delete %s: %w", key, ended(ctx, err))
	}
	return nil
}

func (s *Store) delete(ctx context.Context, key string) error {
	e, err := s.entry(ctx, key)
	if errors.Is(err, chunks.ErrNotFound) {
		return nil
	}
	if err != nil && !errors.Is(err, ErrPieces) { // a damaged one goes too
		return err
	}
	if err := s.remove(ctx, e.sequence); err != nil {
		// It may be gone, or another may be in its place, which came after this call.
		if now, look := s.entry(ctx, key); look == nil && now.sequence == e.sequence || look != nil && !errors.Is(look, chunks.ErrNotFound) {
			return err
		}
		return nil // who took it away purges its pieces
	}
	return s.purge(ctx, e.id)
}

func (s *Store) remove(ctx context.Context, sequence uint64) error {
	ctx, cancel := s.within(ctx)
	defer cancel()
	return s.stream.DeleteMsg(ctx, sequence)
}

// purge removes the pieces of a blob; one without an id has none.
func (s *Store) purge(ctx context.Context, id string) error {
	if id == "" {
		return nil
	}
	ctx, cancel := s.within(ctx)
	defer cancel()
	return s.stream.Purge(ctx, jetstream.WithPurgeSubject(s.piecesOf(id)))
}

// isConflict tells whether another entry is in a key's place than was expected.
func isConflict(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence
}

// message makes one with a header of this package.
func message(subject string, data []byte) *nats.Msg {
	return &nats.Msg{Subject: subject, Data: data, Header: nats.Header{}}
}
