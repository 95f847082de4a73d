package lease

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
	"github.com/rs/zerolog"

	"penstock/infra/bus"
	"penstock/infra/clock"
	"penstock/schemas/subject"
)

const (
	// Every is how often the key is renewed, and asked for.
	Every = time.Second
	// Patience is after how long without a renewal the work is told to stop. The bucket
	// forgets a key after 5 s.
	Patience = 4 * time.Second
)

var (
	// ErrOptions is wrapped by New's error for options that can't work. Nothing was started.
	ErrOptions = errors.New("lease options")
	// ErrLost is the cause with which the context of work ends when the key may not be this
	// process's any more: another may hold it within a second.
	ErrLost = errors.New("the lease is lost: another process may hold it")
)

// Options of a lease.
type Options struct {
	// Client is the connection. Needed.
	Client *bus.Client
	// Clock paces it. Defaults to the machine's.
	Clock clock.Clock
	// Key of KV members, the same for all who want it. Needed.
	Key string
	// Holder is who this process says it is.
	Holder string
	Logger zerolog.Logger
	// Says is asked for what the holder has to say, JSON, at each renewal; nil: nothing.
	Says func() any
}

// Lease is one process's wish to hold a key.
type Lease struct {
	o  Options
	id string // of this process, so that a value is known for its own
}

// Held is a key as its holder last wrote it.
type Held struct {
	// Holder is who, ID which process; Since is when it got it, by its own clock.
	Holder string    `json:"holder"`
	ID     string    `json:"id"`
	Since  time.Time `json:"since"`
	// Says is what it had to say.
	Says json.RawMessage `json:"says,omitempty"`
	// At is when it was written, by the server's clock.
	At time.Time `json:"-"`
}

// New returns a lease that nobody holds by it yet.
func New(o Options) (*Lease, error) {
	if o.Client == nil || o.Key == "" {
		return nil, fmt.Errorf("expected Client and Key: %w", ErrOptions)
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	return &Lease{o: o, id: nuid.Next()}, nil
}

// Read returns who holds a key; false if nobody does.
func Read(ctx context.Context, client *bus.Client, key string) (Held, bool, error) {
	kv, err := client.KV(ctx, subject.MembersKV)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		return Held{}, false, nil // a replay's bus has no members
	}
	if err != nil {
		return Held{}, false, err
	}
	e, err := kv.Get(ctx, key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return Held{}, false, nil
	}
	if err != nil {
		return Held{}, false, fmt.Errorf("lease %s: %w", key, err)
	}
	var h Held
	if err := json.Unmarshal(e.Value(), &h); err != nil {
		return Held{}, false, fmt.Errorf("lease %s: %w", key, err)
	}
	h.At = e.Created().UTC()
	return h, true, nil
}

// Run waits until the key is this process's, then works, until ctx ends (nil) or work
// does. work's context ends when ctx does, or, with the cause ErrLost, when the key may not
// be its own any more; if work returns nil then, the key is waited for again.
func (l *Lease) Run(ctx context.Context, work func(ctx context.Context) error) error {
	behind := ""
	for ctx.Err() == nil {
		revision, began, err := l.take(ctx)
		if err != nil || revision == 0 {
			if err != nil && ctx.Err() == nil {
				l.o.Logger.Debug().Err(err).Str("lease", l.o.Key).Msg("can't be asked for now")
			} else {
				behind = l.waits(ctx, behind)
			}
			if l.o.Clock.Sleep(ctx, Every) != nil {
				return nil //nolint:nilerr // The context has ended.
			}
			continue
		}
		behind = ""
		l.o.Logger.Info().Str("lease", l.o.Key).Msg("held: this process does the work")
		if lost, err := l.hold(ctx, revision, began, work); err != nil || !lost {
			return err
		}
		l.o.Logger.Warn().Str("lease", l.o.Key).Msg("not renewed in time: the work was stopped, and is waited for")
	}
	return nil
}

// waits says whom this process waits for, once for each that holds the key, and that it
// stands by. It returns who that is.
func (l *Lease) waits(ctx context.Context, before string) string {
	ctx, cancel := context.WithTimeout(ctx, Every)
	defer cancel()
	held, ok, err := Read(ctx, l.o.Client, l.o.Key)
	if err != nil || !ok {
		return before
	}
	if held.ID != before {
		l.o.Logger.Info().Str("lease", l.o.Key).Str("holder", held.Holder).Time("since", held.Since).Msg("another process holds it: this one stands by")
	}
	l.standBy(ctx)
	return held.ID
}

// standBy writes that this process waits for the key: it is forgotten 5 s after the last
// time. That it can't be written is no reason to wait otherwise.
func (l *Lease) standBy(ctx context.Context) {
	kv, err := l.o.Client.KV(ctx, subject.MembersKV)
	if err == nil {
		var value []byte
		if value, err = json.Marshal(Held{Holder: l.o.Holder, ID: l.id}); err == nil {
			_, err = kv.Put(ctx, l.o.Key+waiting+l.id, value)
		}
	}
	if err != nil {
		l.o.Logger.Debug().Err(err).Str("lease", l.o.Key).Msg("can't say that this process stands by")
	}
}

// waiting is between a key and the id of a process that waits for it, in the key that says so.
const waiting = ".waiting."

// StandingBy returns the names of those who wait for a key, sorted; one that is just about
// to get it may be among them.
func StandingBy(ctx context.Context, client *bus.Client, key string) ([]string, error) {
	held, _, err := Read(ctx, client, key)
	if err != nil {
		return nil, err
	}
	kv, err := client.KV(ctx, subject.MembersKV)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	keys, err := kv.ListKeysFiltered(ctx, key+waiting+"*")
	if err != nil {
		return nil, fmt.Errorf("lease %s: who waits: %w", key, err)
	}
	defer func() { _ = keys.Stop() }()
	var names []string
	for name := range keys.Keys() {
		e, err := kv.Get(ctx, name)
		if errors.Is(err, jetstream.ErrKeyNotFound) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("lease %s: who waits: %w", key, err)
		}
		var h Held
		if json.Unmarshal(e.Value(), &h) == nil && h.ID != held.ID {
			names = append(names, h.Holder)
		}
	}
	slices.Sort(names)
	return names, nil
}

// take makes the key; revision 0: another has it.
func (l *Lease) take(ctx context.Context) (revision uint64, began time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, Every)
	defer cancel()
	kv, err := l.o.Client.KV(ctx, subject.MembersKV)
	if err != nil {
		return 0, began, err
	}
	began = l.o.Clock.Now()
	value, err := l.value(began)
	if err != nil {
		return 0, began, err
	}
	revision, err = kv.Create(ctx, l.o.Key, value)
	if errors.Is(err, jetstream.ErrKeyExists) {
		return 0, began, nil
	}
	if err != nil {
		return 0, began, fmt.Errorf("lease %s: %w", l.o.Key, err)
	}
	return revision, began, nil
}

func (l *Lease) value(since time.Time) ([]byte, error) {
	h := Held{Holder: l.o.Holder, ID: l.id, Since: since.UTC()}
	if l.o.Says != nil {
		says, err := json.Marshal(l.o.Says())
		if err != nil {
			return nil, fmt.Errorf("lease %s: what is said: %w", l.o.Key, err)
		}
		h.Says = says
	}
	value, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("lease %s: %w", l.o.Key, err)
	}
	return value, nil
}

// hold works as long as the key is renewed, and gives it back. The key is renewed until the
// work has ended, also while it takes its time to stop; lost says that it could not be.
func (l *Lease) hold(ctx context.Context, revision uint64, since time.Time, work func(ctx context.Context) error) (lost bool, err error) {
	inner, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	ctx = context.WithoutCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- work(inner) }()
	renewed := since
	tick := l.o.Clock.NewTicker(Every)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			l.leave(ctx, revision)
			return false, err
		case <-tick.C():
		}
		began := l.o.Clock.Now()
		next, err := l.renew(ctx, revision, since)
		switch {
		case err == nil:
			revision, renewed = next, began
		case l.o.Clock.Now().Sub(renewed) >= Patience-Every || errors.Is(err, errTaken):
			// One more try would come too late.
			l.o.Logger.Warn().Err(err).Str("lease", l.o.Key).Msg("can't be renewed: the work is stopped")
			stop(ErrLost)
			return true, <-ended
		}
	}
}

// errTaken says that the key is another's, or gone.
var errTaken = errors.New("it is not this process's any more")

// renew writes the key anew. An answer that was lost is found by reading it.
func (l *Lease) renew(ctx context.Context, revision uint64, since time.Time) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, Every)
	defer cancel()
	kv, err := l.o.Client.KV(ctx, subject.MembersKV)
	if err != nil {
		return 0, err
	}
	value, err := l.value(since)
	if err != nil {
		return 0, err
	}
	next, err := kv.Update(ctx, l.o.Key, value, revision)
	if err == nil {
		return next, nil
	}
	if !errors.Is(err, jetstream.ErrKeyExists) {
		return 0, fmt.Errorf("lease %s: %w", l.o.Key, err)
	}
	e, err := kv.Get(ctx, l.o.Key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return 0, errTaken
	}
	if err != nil {
		return 0, fmt.Errorf("lease %s: %w", l.o.Key, err)
	}
	var h Held
	if json.Unmarshal(e.Value(), &h) != nil || h.ID != l.id {
		return 0, errTaken
	}
	return e.Revision(), nil
}

// leave gives the key back, so that others need not wait for its end.
func (l *Lease) leave(ctx context.Context, revision uint64) {
	ctx, cancel := context.WithTimeout(ctx, Every)
	defer cancel()
	kv, err := l.o.Client.KV(ctx, subject.MembersKV)
	if err == nil {
		err = kv.Delete(ctx, l.o.Key, jetstream.LastRevision(revision))
	}
	if err != nil {
		l.o.Logger.Debug().Err(err).Str("lease", l.o.Key).Msg("can't be given back; it goes by itself")
	}
}
