package gate

import (
	"context"
	"time"

	"penstock/schemas/subject"
)

const (
	// DefaultLease is how long an entry point believes a mover that it doesn't hear
	// of.
	DefaultLease = 2 * time.Second
	// replyWithin is how long an entry point waits for running writes before it
	// says that they are running: a sign of life.
	replyWithin = 100 * time.Millisecond
	// whereWithin bounds a question, and whereAgain is between two.
	whereWithin = time.Second
	whereAgain  = 100 * time.Millisecond
)

// hold keeps an owner's writes waiting.
type hold struct {
	request
	drained chan struct{} // closed when the writes of before have left
	done    chan struct{} // closed when it is over
	renewed chan struct{} // the mover was heard of
	unsure  bool          // the lease is over; guarded by the keeper's lock
}

// answer deals with a request of a mover.
func (k *Keeper) answer(body []byte) []byte {
	r, err := decode[request](body)
	if err != nil {
		k.o.Count(Unreadable, 1)
		return encode(answer{stateLost, k.instance})
	}
	state := stateAlive
	switch r.Op {
	case opHold:
		state = k.renew(r)
	case opRelease:
		k.end(r, false)
		state = stateReleased
	case opWho:
	default:
		k.o.Count(Unreadable, 1)
		state = stateLost
	}
	return encode(answer{state, k.instance})
}

// renew holds an owner, or goes on holding it, and says how far that is.
func (k *Keeper) renew(r request) string {
	if r.ID == "" || r.Owner == "" {
		k.o.Count(Unreadable, 1)
		return stateLost
	}
	h := k.hold(r)
	if h == nil {
		return stateLost
	}
	select {
	case h.renewed <- struct{}{}:
	default: // It will be seen.
	}
	t := k.o.Clock.NewTimer(replyWithin)
	defer t.Stop()
	select {
	case <-h.drained:
	case <-h.done:
		return stateLost
	case <-k.ctx.Done():
		return stateLost
	case <-t.C():
		return stateWaiting
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	if o := k.owners[r.Owner]; o == nil || o.holds[r.ID] != h {
		return stateLost
	}
	return stateHeld
}

// hold returns the hold of that id, a new one if there is none; nil if it is over,
// or nobody can be held any more.
func (k *Keeper) hold(r request) *hold {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.over.has[r.ID] || k.ctx.Err() != nil {
		return nil
	}
	o := k.owners[r.Owner]
	if o != nil && o.holds[r.ID] != nil {
		h := o.holds[r.ID]
		h.unsure = h.unsure && r.LeaseMS == 0 // A slot says nothing of its mover.
		return h
	}
	if o == nil {
		o = &owner{holds: map[string]*hold{}, over: make(chan struct{})}
		k.owners[r.Owner] = o
		// Before the counts are looked at: Enter looks the other way round.
		k.busy.Add(1)
	}
	h := &hold{
		request: r, drained: make(chan struct{}), done: make(chan struct{}), renewed: make(chan struct{}, 1),
	}
	o.holds[r.ID] = h
	k.o.Count(Held, 1)
	k.working.Go(func() { k.drainFor(h) })
	k.working.Go(func() { k.guard(h) })
	return h
}

// drainFor waits for the writes that were let in before the hold.
func (k *Keeper) drainFor(h *hold) {
	ctx, cancel := context.WithCancel(k.ctx)
	defer cancel()
	k.working.Go(func() {
		select {
		case <-h.done:
			cancel()
		case <-ctx.Done():
		}
	})
	if k.counters.settle(ctx, k.counters.of(h.Owner)) == nil {
		close(h.drained)
	}
}

// guard ends a hold whose mover is not heard of any more, once it is known for sure
// where the owner is.
func (k *Keeper) guard(h *hold) {
	lease := clampLease(h.LeaseMS)
	t := k.o.Clock.NewTimer(lease)
	defer func() { t.Stop() }()
	for {
		select {
		case <-h.done:
			return
		case <-k.ctx.Done():
			return
		case <-h.renewed:
			t.Stop()
			t = k.o.Clock.NewTimer(lease)
			continue
		case <-t.C():
		}
		k.o.Count(Expired, 1)
		k.o.Logger.Warn().Str("owner", h.Owner).Str("hold", h.ID).Msg("the mover of a hold is silent: asking where the owner is")
		k.mu.Lock()
		h.unsure = true
		k.mu.Unlock()
		if !k.doubted(h) {
			return
		}
		t = k.o.Clock.NewTimer(lease)
	}
}

func clampLease(ms int64) time.Duration {
	lease := time.Duration(ms) * time.Millisecond
	if lease <= 0 || lease > DefaultLease {
		return DefaultLease
	}
	return lease
}

// doubted asks movers where the owner of a hold is until one knows, which ends it
// (false), or its own mover is heard of again (true).
func (k *Keeper) doubted(h *hold) bool {
	for {
		k.mu.RLock()
		unsure := h.unsure
		k.mu.RUnlock()
		if !unsure {
			return true
		}
		w, err := k.where(h)
		if err == nil && w.OK {
			r := h.request
			r.Where = w.Where
			// If its own mover was heard of meanwhile, it goes on: what that one has
			// in mind will be refused, for locations has been written once more.
			return !k.end(r, true)
		}
		k.o.Count(Unanswered, 1)
		t := k.o.Clock.NewTimer(whereAgain)
		select {
		case <-h.done:
		case <-k.ctx.Done():
		case <-h.renewed:
			t.Stop()
			continue
		case <-t.C():
			continue
		}
		t.Stop()
		return false
	}
}

// where asks a mover.
func (k *Keeper) where(h *hold) (word, error) {
	ctx, cancel := context.WithTimeout(k.ctx, whereWithin)
	defer cancel()
	k.o.Count(Asked, 1)
	b, err := k.o.link.ask(ctx, subject.GateWhere, encode(question{h.Owner, k.o.Site, h.Data}))
	if err != nil {
		return word{}, err
	}
	return decode[word](b)
}

// end ends a hold, only one in doubt if doubted is set, and reports whether it is
// over. Who waited learns first where the owner is.
func (k *Keeper) end(r request, doubted bool) bool {
	if r.Where != nil && k.o.Learn != nil {
		k.o.Learn(r.Owner, r.Where.Site, r.Where.Version)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	o := k.owners[r.Owner]
	if doubted && o != nil && o.holds[r.ID] != nil && !o.holds[r.ID].unsure {
		return false
	}
	if r.ID != "" && !k.over.has[r.ID] {
		k.over.put(r.ID) // A request to hold it that comes later is not followed.
	}
	if o == nil || o.holds[r.ID] == nil {
		return true
	}
	close(o.holds[r.ID].done)
	delete(o.holds, r.ID)
	if len(o.holds) == 0 {
		delete(k.owners, r.Owner)
		close(o.over)
		k.busy.Add(-1)
	}
	return true
}
