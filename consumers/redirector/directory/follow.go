package directory

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"penstock/infra/bus"
	"penstock/schemas/subject"
)

const (
	// tick is how often a follower looks around, or more often if Check is shorter.
	tick = 500 * time.Millisecond
	// askTimeout bounds a question to the bus.
	askTimeout = 5 * time.Second
	// retryLeast and retryMost pace the attempts to follow.
	retryLeast = 50 * time.Millisecond
	retryMost  = 2 * time.Second
	// lacks is how often in a row the bus must be found to hold more keys than
	// were seen before that is believed: a key that was new may have been
	// overwritten just then, so that its second message comes later.
	lacks = 3
)

// Run follows the bus until ctx ends, then writes a last snapshot and returns nil.
// It runs once.
func (d *Directory) Run(ctx context.Context) error {
	if !d.started.CompareAndSwap(false, true) {
		return ErrRunning
	}
	var tasks sync.WaitGroup
	if d.opts.Snapshot != "" {
		tasks.Go(func() { d.keep(ctx) })
	}
	defer tasks.Wait()
	away := false // and that was said
	for wait := retryLeast; ; wait = min(2*wait, retryMost) {
		f := &follower{d: d}
		err := f.run(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if f.heard { // It was going well.
			wait = retryLeast
		}
		away = d.tell(err, away && f.r == nil)
		if d.clock.Sleep(ctx, wait) != nil {
			return nil
		}
	}
}

// tell logs why following ended, and that the bus is away only once: what the
// attempts fail with until it is back says nothing more. It returns whether it is.
func (d *Directory) tell(err error, said bool) (away bool) {
	if d.opts.Client.Connected() && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, nats.ErrReconnectBufExceeded) {
		d.log.Warn().Err(err).Msg("following locations begins again")
		return false
	}
	if !said {
		d.log.Warn().Msg("the bus is away; locations stay as last known until it is back")
	}
	return true
}

// follower is one attempt to follow the bus: from one connection to its loss.
type follower struct {
	d          *Directory
	r          *bus.Reader
	reconnects uint64
	loadTo     uint64 // where the load ends
	heard      bool   // a message came
	idle       bool   // none came since the last tick
	lacks      int

	// A question that the bus has answered and whose answer can be compared once
	// everything up to last was applied.
	asked      bool
	last, keys uint64

	checked time.Time // when the bus was asked last
	since   time.Time // in step without a break since; zero if it isn't
}

// run follows until something is wrong, or ctx ends.
func (f *follower) run(ctx context.Context) (err error) {
	d := f.d
	defer func() {
		d.leaveStep()
		d.reader.Store(nil)
	}()
	ctx, release := f.whileConnected(ctx)
	defer release()
	f.reconnects = d.opts.Client.NC.Stats().Reconnects
	state, err := f.look(ctx)
	if err != nil {
		return err
	}
	from := f.begin(ctx, state)
	if f.r, err = d.opts.Client.ReadKV(ctx, subject.LocationsKV, from); err != nil {
		return f.fault(err)
	}
	defer f.r.Close()
	d.reader.Store(f.r)
	if d.loading && state.State.Msgs == 0 {
		f.loaded()
	}
	f.checked = d.clock.Now()
	ticker := d.clock.NewTicker(min(tick, d.opts.Check))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case m, open := <-f.r.C():
			if !open {
				return f.fault(errors.Join(f.r.Err(), errEnded))
			}
			if err := f.take(m); err != nil {
				return f.fault(err)
			}
		case <-ticker.C():
			if err := f.tick(ctx); err != nil {
				return f.fault(err)
			}
		}
	}
}

// whileConnected returns a context that also ends with the connection: questions
// that were under way then would wait for their answers in vain.
func (f *follower) whileConnected(ctx context.Context) (_ context.Context, release func()) {
	nc := f.d.opts.Client.NC
	ctx, cancel := context.WithCancelCause(ctx)
	changes := nc.StatusChanged(nats.RECONNECTING, nats.DISCONNECTED, nats.CLOSED)
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-changes:
			cancel(errLost)
		case <-ctx.Done():
		}
	})
	return ctx, func() {
		cancel(nil)
		watch.Wait()
		nc.RemoveStatusListener(changes)
	}
}

// fault makes the next attempt read everything again where this error says that
// the bus is not as it was read.
func (f *follower) fault(err error) error {
	var trimmed *bus.ErrTrimmed
	var beyond *bus.ErrBeyond
	if errors.As(err, &trimmed) || errors.As(err, &beyond) || errors.Is(err, errReset) ||
		errors.Is(err, errPurged) || errors.Is(err, errMissed) {
		f.d.mu.Lock()
		defer f.d.mu.Unlock()
		f.d.at = position{}
	}
	return err
}

// look asks what the bucket holds.
func (f *follower) look(ctx context.Context) (*jetstream.StreamInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	c := f.d.opts.Client
	s, err := c.JS.Stream(ctx, c.KVStream(subject.LocationsKV))
	if err != nil {
		return nil, fmt.Errorf("bucket of locations: %w", err)
	}
	return s.CachedInfo(), nil
}

// begin returns the sequence from which to read: on from where it was read to if
// the bus is still the one that was read, else from the first.
func (f *follower) begin(ctx context.Context, info *jetstream.StreamInfo) uint64 {
	d := f.d
	f.loadTo = info.State.LastSeq
	why := f.otherwise(ctx, info)
	d.mu.Lock()
	defer d.mu.Unlock()
	if why == "" {
		if !d.loading {
			f.loadTo = 0
		}
		return d.at.seq + 1
	}
	d.loading = true
	d.at = position{created: info.Created}
	clear(d.ghosts)
	d.table.beginMarking()
	d.shown.loads.WithLabelValues(why).Inc()
	d.log.Info().Str("why", why).Uint64("entries", info.State.NumSubjects).Msg("locations are read from the beginning")
	return 0
}

// otherwise says why the bus can't be read on from the position; "" if it can.
func (f *follower) otherwise(ctx context.Context, info *jetstream.StreamInfo) string {
	d := f.d
	d.mu.Lock()
	at := d.at
	d.mu.Unlock()
	switch {
	case at.seq == 0:
		return "unread"
	case !at.created.Equal(info.Created):
		return "made-anew"
	case at.seq > info.State.LastSeq:
		return "set-back"
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	c := d.opts.Client
	s, err := c.JS.Stream(ctx, c.KVStream(subject.LocationsKV))
	if err != nil {
		return "unanswered"
	}
	m, err := s.GetMsg(ctx, at.seq)
	if err != nil || !m.Time.Equal(at.stored) {
		// Purged, or written anew under the same number; or only overwritten, which
		// can't be told from that.
		return "position-gone"
	}
	return ""
}

// take applies a message.
func (f *follower) take(m bus.Msg) error {
	d := f.d
	if d.opts.Client.NC.Stats().Reconnects != f.reconnects {
		return errReconnected // it may come from another bus
	}
	if f.asked && m.Seq > f.last {
		if err := f.compare(); err != nil {
			return err
		}
	}
	d.mu.Lock()
	d.apply(m)
	d.mu.Unlock()
	f.heard, f.idle = true, false
	switch {
	case f.loadTo > 0 && (m.Seq >= f.loadTo || m.Pending == 0):
		f.loaded()
	case m.Pending == 0 && !d.loading:
		d.enterStep()
	}
	if f.asked && m.Seq == f.last {
		return f.compare()
	}
	return nil
}

// loaded ends the reading of everything.
func (f *follower) loaded() {
	d := f.d
	removed := d.table.sweep()
	d.mu.Lock()
	d.loading = false
	if removed > 0 {
		d.changes++
	}
	seq := d.at.seq
	d.mu.Unlock()
	f.loadTo = 0
	d.shown.changes.WithLabelValues("swept").Add(float64(removed))
	d.log.Info().Int("owners", d.Len()).Int("removed", removed).Uint64("sequence", seq).Msg("locations are in memory")
	d.enterStep()
	d.setReady()
}

// tick looks around.
func (f *follower) tick(ctx context.Context) error {
	d := f.d
	now := d.clock.Now()
	idle := f.idle
	f.idle = true
	if f.r.Interrupted() || !d.opts.Client.Connected() {
		f.since = time.Time{}
		d.leaveStep()
		return nil
	}
	if d.opts.Client.NC.Stats().Reconnects != f.reconnects {
		return errReconnected
	}
	if d.loading && idle && f.atEnd(ctx) {
		f.loaded()
	}
	if idle && !d.loading {
		d.enterStep()
	}
	if d.current.Load() {
		d.inStep.Store(now.UnixMicro())
		if f.since.IsZero() {
			f.since = now
		}
		d.expireHints(now, f.since)
	}
	if f.asked && idle {
		// What was still to come up to then is gone from the bus.
		if err := f.compare(); err != nil {
			return err
		}
	}
	if now.Sub(f.checked) >= d.opts.Check && !d.loading {
		f.checked = now
		return f.ask(ctx)
	}
	return nil
}

// atEnd reports whether there is nothing more to read: the last that there was may
// be gone.
func (f *follower) atEnd(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	c := f.d.opts.Client
	s, err := c.JS.Stream(ctx, c.KVStream(subject.LocationsKV))
	if err != nil {
		return false
	}
	if s.CachedInfo().State.Msgs == 0 {
		return true
	}
	m, err := s.GetLastMsgForSubject(ctx, f.d.prefix+">")
	return err == nil && m.Sequence <= f.d.at.seq || errors.Is(err, jetstream.ErrMsgNotFound)
}

// ask asks the bus whether it is still the one that was read. Without an answer
// nothing is known; the connection's own watchdogs see to that.
func (f *follower) ask(ctx context.Context) error {
	d := f.d
	info, err := f.look(ctx)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return fmt.Errorf("%w: %w", errReset, err)
	}
	if err != nil {
		return nil //nolint:nilerr // as said
	}
	if !info.Created.Equal(d.at.created) || info.State.LastSeq < d.at.seq {
		return errReset
	}
	f.asked, f.last, f.keys = true, info.State.LastSeq, info.State.NumSubjects
	if d.at.seq == f.last {
		return f.compare()
	}
	return nil
}

// compare compares the number of keys on the bus with those that were seen.
// Entries and deletions come as messages, a purge doesn't.
func (f *follower) compare() error {
	f.asked = false
	d := f.d
	seen := uint64(d.Len() + len(d.ghosts))
	switch {
	case seen > f.keys:
		return errPurged
	case seen == f.keys:
		f.lacks = 0
	default:
		if f.lacks++; f.lacks >= lacks {
			return errMissed
		}
	}
	return nil
}

// enterStep notes that everything that the bus has told of is applied.
func (d *Directory) enterStep() {
	if !d.current.Load() {
		d.inStep.Store(d.clock.Now().UnixMicro())
		d.current.Store(true)
	}
}

// leaveStep notes that the bus is not heard; the age grows from the last time that
// it was.
func (d *Directory) leaveStep() { d.current.Store(false) }
