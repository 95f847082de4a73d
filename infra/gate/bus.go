package gate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"penstock/infra/bus"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// onBus is the link over a bus's client.
type onBus struct{ c *bus.Client }

func (b onBus) ask(ctx context.Context, subj string, body []byte) ([]byte, error) {
	m, err := b.c.NC.RequestWithContext(ctx, b.c.Subject(subj), body)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", subj, err)
	}
	return m.Data, nil
}

func (b onBus) serve(subj, group string, handle func(body []byte) []byte) (func(), error) {
	var mu sync.Mutex
	var working sync.WaitGroup
	ended := false
	deal := func(m *nats.Msg) {
		mu.Lock()
		defer mu.Unlock()
		if ended {
			return // Who asked asks again, or another.
		}
		working.Go(func() { _ = m.Respond(handle(m.Data)) }) // Likewise.
	}
	var sub *nats.Subscription
	var err error
	if group == "" {
		sub, err = b.c.NC.Subscribe(b.c.Subject(subj), deal)
	} else {
		sub, err = b.c.NC.QueueSubscribe(b.c.Subject(subj), group, deal)
	}
	if err != nil {
		return nil, fmt.Errorf("subscribe to %s: %w", subj, err)
	}
	return func() {
		_ = sub.Unsubscribe() // The connection may be gone.
		mu.Lock()
		ended = true
		mu.Unlock()
		working.Wait()
	}, nil
}

func (b onBus) put(ctx context.Context, key string, value []byte) (uint64, error) {
	kv, err := b.c.KV(ctx, subject.EntriesKV)
	if err != nil {
		return 0, err
	}
	revision, err := kv.Put(ctx, key, value)
	if err != nil {
		return 0, fmt.Errorf("write %s: %w", key, err)
	}
	return revision, nil
}

func (b onBus) get(ctx context.Context, key string) ([]byte, error) {
	kv, err := b.c.KV(ctx, subject.EntriesKV)
	if err != nil {
		return nil, err
	}
	e, err := kv.Get(ctx, key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	return e.Value(), nil
}

func (b onBus) remove(ctx context.Context, key string) error {
	kv, err := b.c.KV(ctx, subject.EntriesKV)
	if err != nil {
		return err
	}
	if err := kv.Delete(ctx, key); err != nil {
		return fmt.Errorf("delete %s: %w", key, err)
	}
	return nil
}

func (b onBus) follow(ctx context.Context, fn func(change) bool) error {
	in, err := b.c.ReadKV(ctx, subject.EntriesKV, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	prefix := b.c.KeyPrefix(subject.EntriesKV)
	for m := range in.C() {
		c := change{key: strings.TrimPrefix(m.Subject, prefix), value: m.Data, revision: m.Seq}
		if len(m.Header["KV-Operation"]) > 0 { // deleted or purged
			c.value = nil
		}
		if !fn(c) {
			return nil
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("follow bucket %s: %w", subject.EntriesKV, in.Err())
}

func (b onBus) location(ctx context.Context, owner string) (control.Location, uint64, error) {
	kv, err := b.c.KV(ctx, subject.LocationsKV)
	if err != nil {
		return control.Location{}, 0, err
	}
	e, err := kv.Get(ctx, subject.Encode(owner))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return control.Location{}, 0, nil
	}
	if err != nil {
		return control.Location{}, 0, fmt.Errorf("location of %.80q: %w", owner, err)
	}
	l, err := control.DecodeLocation(e.Value())
	if err != nil {
		return control.Location{}, 0, fmt.Errorf("location of %.80q: %w", owner, err)
	}
	return *l, e.Revision(), nil
}

func (b onBus) relocate(ctx context.Context, owner string, l control.Location, revision uint64) error {
	body, err := control.Encode(l)
	if err != nil {
		return err
	}
	kv, err := b.c.KV(ctx, subject.LocationsKV)
	if err != nil {
		return err
	}
	if revision == 0 {
		_, err = kv.Create(ctx, subject.Encode(owner), body)
	} else {
		_, err = kv.Update(ctx, subject.Encode(owner), body, revision)
	}
	var api *jetstream.APIError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, jetstream.ErrKeyExists), errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence:
		return fmt.Errorf("location of %.80q: %w", owner, errConflict)
	}
	return fmt.Errorf("location of %.80q: %w", owner, err)
}
