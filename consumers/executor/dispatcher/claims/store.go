package claims

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"penstock/infra/bus"
	"penstock/schemas/subject"
)

// within bounds one question to the bus.
const within = time.Second

// store is where the book is.
type store interface {
	// read returns the book as it is; without a key it has no number and no rows. An error
	// that wraps errBook comes with a revision to be written over.
	read(ctx context.Context) (revision, error)
	// write puts a book in the place of a revision, or returns errConflict. After another
	// error it may have been written or not.
	write(ctx context.Context, over uint64, b book) error
	// remove takes the key away if it is that revision.
	remove(ctx context.Context, over uint64) error
}

// kvStore is the key in KV members.
type kvStore struct {
	client *bus.Client
	key    string
	kv     jetstream.KeyValue // nil until it was opened
	makes  bool               // the bucket if it isn't there
}

// open returns the bucket. One that is missing was in the memory of a server that was
// restarted, and is made as init makes it.
func (s *kvStore) open(ctx context.Context) (jetstream.KeyValue, error) {
	if s.kv != nil {
		return s.kv, nil
	}
	kv, err := s.client.KV(ctx, subject.MembersKV)
	if errors.Is(err, jetstream.ErrBucketNotFound) && s.makes {
		kv, err = s.client.JS.CreateKeyValue(ctx, jetstream.KeyValueConfig{
			Bucket: s.client.Stream(subject.MembersKV), History: 1, TTL: ttl,
			Storage: jetstream.MemoryStorage, Replicas: s.client.Replicas(),
		})
	}
	if err != nil {
		return nil, fmt.Errorf("claims: %w", err)
	}
	s.kv = kv
	return kv, nil
}

// failed forgets the bucket, for it may have to be made anew, and names the key.
func (s *kvStore) failed(err error) error {
	s.kv = nil
	return fmt.Errorf("claims %s: %w", s.key, err)
}

func (s *kvStore) read(ctx context.Context) (revision, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	kv, err := s.open(ctx)
	if err != nil {
		return revision{}, err
	}
	e, err := kv.Get(ctx, s.key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return revision{}, nil
	}
	if err != nil {
		return revision{}, s.failed(err)
	}
	r, err := read(e.Value(), e.Revision(), e.Created().UnixNano())
	if err != nil {
		return r, fmt.Errorf("claims %s: %w", s.key, err)
	}
	return r, nil
}

func (s *kvStore) write(ctx context.Context, over uint64, b book) error {
	value, err := json.Marshal(b)
	if err != nil {
		return fmt.Errorf("claims %s: %w", s.key, err)
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	kv, err := s.open(ctx)
	if err != nil {
		return err
	}
	if over == 0 {
		_, err = kv.Create(ctx, s.key, value)
	} else {
		_, err = kv.Update(ctx, s.key, value, over)
	}
	return s.answer(err)
}

func (s *kvStore) remove(ctx context.Context, over uint64) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	kv, err := s.open(ctx)
	if err != nil {
		return err
	}
	return s.answer(kv.Delete(ctx, s.key, jetstream.LastRevision(over)))
}

// answer tells a write that another came before from one that failed.
func (s *kvStore) answer(err error) error {
	var api *jetstream.APIError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, jetstream.ErrKeyExists),
		errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence:
		return errConflict
	}
	return s.failed(err)
}
