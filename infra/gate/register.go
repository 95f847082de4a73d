package gate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"penstock/schemas/subject"
)

const (
	// aloneWithin is how long a start waits for another of its name to answer.
	aloneWithin = 300 * time.Millisecond
	// lookEvery is how often an entry point looks whether it is still registered.
	lookEvery = 5 * time.Second
	// tryWithin bounds one attempt at the bus, and tryAgain is between two.
	tryWithin = 2 * time.Second
	tryAgain  = 200 * time.Millisecond
)

// alone makes sure that nobody else answers under this name. No answer says that
// nobody does, or that the bus is away: then registering shows.
func (k *Keeper) alone(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, aloneWithin)
	defer cancel()
	b, err := k.o.link.ask(ctx, subject.Gate(k.o.Site, k.o.Name), encode(request{Op: opWho}))
	if err == nil {
		a, err := decode[answer](b)
		if err == nil && a.State == stateAlive && a.Instance != k.instance {
			return fmt.Errorf("%s of %s, instance %s: %w", k.o.Name, k.o.Site, a.Instance, ErrNameInUse)
		}
	}
	return nil
}

// listen answers movers; nil if the context ended first.
func (k *Keeper) listen(ctx context.Context) (stop func()) {
	for ctx.Err() == nil {
		stop, err := k.o.link.serve(subject.Gate(k.o.Site, k.o.Name), "", k.answer)
		if err == nil {
			return stop
		}
		k.failed(err, "cannot listen to movers")
		_ = k.o.Clock.Sleep(ctx, tryAgain) // Its end ends the loop.
	}
	return nil
}

// keep registers the entry point, and again whenever somebody has forgotten it,
// until the context ends.
func (k *Keeper) keep(ctx context.Context) error {
	began, first := k.o.Clock.Now(), true
	for ctx.Err() == nil {
		err := k.look(ctx, first)
		switch {
		case ctx.Err() != nil:
		case errors.Is(err, ErrDisplaced):
			k.o.Logger.Error().Err(err).Msg("no write is let in any more")
			return err
		case err == nil:
			first = false
			k.letIn()
		case first:
			k.failed(err, "cannot register")
			if k.o.Away >= 0 && k.o.Clock.Now().Sub(began) >= k.o.Away && !k.is(open) {
				k.o.Count(Unknown, 1)
				k.o.Logger.Warn().Dur("after", k.o.Away).Msg("the bus is away: writes are let in, and movers may not know of this entry point")
				k.letIn()
			}
		default:
			k.failed(err, "cannot look whether this entry point is registered")
		}
		pause := lookEvery
		if err != nil {
			pause = tryAgain
		}
		_ = k.o.Clock.Sleep(ctx, pause) // Its end ends the loop.
	}
	return nil
}

func (k *Keeper) is(s state) bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.state == s
}

func (k *Keeper) failed(err error, what string) {
	if k.ctx.Err() == nil {
		k.o.Count(Failed, 1)
		k.o.Logger.WithLevel(k.grumble.level(k.o.Clock.Now())).Err(err).Msg(what)
	}
}

// look registers the entry point if it isn't, and at its start in any case: then
// the slots that it finds are the holds in force that it may have been asked for
// before.
func (k *Keeper) look(ctx context.Context, first bool) error {
	if there, err := k.present(ctx); err != nil || there && !first {
		return err
	}
	if k.o.Sync != nil {
		if err := k.o.Sync(ctx); err != nil {
			return fmt.Errorf("locations up to now: %w", err)
		}
	}
	k.o.Logger.Info().Str("site", k.o.Site).Str("entry", k.o.Name).Msg("registered with the movers")
	return nil
}

// present registers the entry point if it isn't. there says that it was, by itself,
// or has drained.
func (k *Keeper) present(ctx context.Context) (there bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, tryWithin)
	defer cancel()
	select {
	case k.register <- struct{}{}:
		defer func() { <-k.register }()
	case <-ctx.Done():
		return false, ctx.Err()
	}
	if k.is(closed) {
		return true, nil
	}
	key := entryKey(k.o.Site, k.o.Name)
	have, err := k.o.link.get(ctx, key)
	if err != nil {
		return false, err
	}
	if r, err := decode[registration](have); have != nil && err == nil && k.mine {
		if r.Instance == k.instance {
			return true, nil
		}
		return false, fmt.Errorf("%s of %s, instance %s: %w", k.o.Name, k.o.Site, r.Instance, ErrDisplaced)
	}
	revision, err := k.o.link.put(ctx, key, encode(registration{k.instance}))
	if err != nil {
		return false, err
	}
	k.o.Count(Registered, 1)
	if err := k.adopt(ctx, revision); err != nil {
		return false, err
	}
	k.mine = true
	return false, nil
}

// adopt holds the owners of all slots of this site up to a revision. Of none is it
// known whether its mover lives; who does renews it.
func (k *Keeper) adopt(ctx context.Context, upTo uint64) error {
	found := map[string]slot{}
	err := k.o.link.follow(ctx, func(c change) bool {
		kind, names, ok := parseKey(c.key)
		if ok && kind == holdKind && names[0] == k.o.Site {
			delete(found, c.key)
			if s, err := decode[slot](c.value); c.value != nil && (err != nil || s.ID != "") {
				if err != nil {
					k.o.Count(Unreadable, 1)
				}
				found[c.key] = s
			}
		}
		return c.revision < upTo
	})
	if err != nil {
		return err
	}
	for _, s := range found {
		if s.ID != "" {
			k.hold(request{Op: opHold, ID: s.ID, Owner: s.Owner, Data: s.Data})
		}
	}
	return nil
}

// Drain ends the entry point's part: it lets no write in any more, waits for those
// that are running, and takes it out of the register, so that movers don't wait for
// it. It is to be called once no more requests are accepted, while Run is running.
// ErrNotDrained, or an error of the bus: then it stays registered.
func (k *Keeper) Drain(ctx context.Context) error {
	k.shut()
	if err := k.counters.drain(ctx); err != nil {
		return fmt.Errorf("%s of %s: %w: %w", k.o.Name, k.o.Site, ErrNotDrained, err)
	}
	select {
	case k.register <- struct{}{}:
		defer func() { <-k.register }()
	case <-ctx.Done():
		return fmt.Errorf("%s of %s stays registered: %w", k.o.Name, k.o.Site, ctx.Err())
	}
	for {
		try, cancel := context.WithTimeout(ctx, tryWithin)
		err := k.o.link.remove(try, entryKey(k.o.Site, k.o.Name))
		cancel()
		if err == nil {
			return nil
		}
		if k.o.Clock.Sleep(ctx, tryAgain) != nil {
			return fmt.Errorf("%s of %s stays registered: %w", k.o.Name, k.o.Site, err)
		}
	}
}
