package follow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"penstock/infra/publisher"
	"penstock/schemas/event"
)

// Follower reads files as they grow. Everything belongs to the goroutine of Run.
type Follower struct {
	o       Options
	m       *metrics
	hints   *hints
	samples *samples

	streams []*stream
	asleep  []known // of globs that are not among the options any more
	byID    map[fileID]*stream
	dirs    map[string]*folder
	copies  map[string]looked
	passed  map[string]string // paths that are not followed, and why

	first     bool // nothing has ever been committed
	forgetful bool // streams are done; there may be too many
	scans     uint64
	uses      uint64
	scanned   int64 // µs
	scanDue   time.Time

	now      int64  // µs: of the turn
	note     func() // brings the stream's fingerprints up to its position
	row      event.Request
	buf      []byte
	rows     int   // since the last commit
	horizon  int64 // µs: what the publisher was told
	dirty    bool  // the position has changed since the last commit
	position []byte
	commitAt time.Time // of the last commit
}

// New reads the publisher's position. Nothing is opened before Run.
func New(o Options) (*Follower, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	p, err := parsePosition(o.Publisher.Position())
	if err != nil {
		return nil, fmt.Errorf("follow: %w", err)
	}
	f := &Follower{
		o: o, byID: map[fileID]*stream{}, dirs: map[string]*folder{}, copies: map[string]looked{},
		passed: map[string]string{}, buf: make([]byte, o.MaxLine), horizon: p.horizon, scanned: p.scanned,
		position: slices.Clone(o.Publisher.Position()), first: len(o.Publisher.Position()) == 0,
	}
	if f.m, err = newMetrics(o.Registerer); err != nil {
		return nil, err
	}
	if f.first {
		f.scanned = o.Clock.Now().UnixMicro()
		f.horizon = event.MinTime
	}
	f.samples = newSamples(o)
	f.restore(p.streams)
	return f, nil
}

// restore takes up what was followed.
func (f *Follower) restore(streams []known) {
	now := f.o.Clock.Now()
	for _, k := range streams {
		if !slices.Contains(f.o.Paths, k.pattern) {
			f.asleep = append(f.asleep, k)
			continue
		}
		if k.state == refused { // the parser may be another one now
			k.state = live
		}
		s := newStream(k, now)
		switch s.state {
		case done:
			s.behind = false
		case lost, copied: // a copy may have gone on
			s.state, s.searched = lost, now
		}
		if s.id != none {
			f.byID[s.id] = s
		}
		f.streams = append(f.streams, s)
	}
}

// Run follows until ctx ends, commits what was read, and returns nil; so it does
// when standard input ends and is all there is to read. Any other error is the
// publisher's: nothing of what was not committed was sent, and a new start reads
// it again. Run can be called once.
func (f *Follower) Run(ctx context.Context) error {
	defer f.closeAll()
	f.hints = newHints(f.o.Logger)
	defer f.hints.close()
	f.samples.start()
	defer f.samples.stop()
	f.openStdin(ctx)
	err := f.loop(ctx)
	if err != nil && ctx.Err() == nil {
		return err
	}
	err = f.lastCommit(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		f.o.Logger.Warn().Err(err).Msg("what was read last could not be committed; the next start reads it again")
		return nil
	}
	return err
}

// lastCommit commits what was read although ctx has ended.
func (f *Follower) lastCommit(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return f.commit(ctx)
}

func (f *Follower) closeAll() {
	for _, s := range f.streams {
		s.close()
		if s.pipe != nil {
			s.pipe.stop()
		}
	}
}

// loop reads what there is, a buffer of each file in turn.
func (f *Follower) loop(ctx context.Context) error {
	f.commitAt = f.o.Clock.Now()
	for ctx.Err() == nil {
		now := f.o.Clock.Now()
		if !now.Before(f.scanDue) {
			f.scan()
		}
		f.takeHints(now)
		busy, next, err := f.round(ctx, now)
		if err != nil {
			return err
		}
		f.m.observe(f)
		if f.over() {
			return nil
		}
		if busy {
			continue
		}
		if err := f.sleep(ctx, next); err != nil {
			return err
		}
	}
	return nil
}

// round looks at all streams that are due, and commits when it is time to.
func (f *Follower) round(ctx context.Context, now time.Time) (busy bool, next time.Time, err error) {
	next = f.scanDue
	for _, s := range f.streams { // what a turn adds has its own next time
		if !s.active() {
			continue
		}
		if !s.due.After(now) {
			more, err := f.turn(ctx, s)
			if err != nil {
				return false, next, err
			}
			if err := f.commitInTime(ctx); err != nil {
				return false, next, err
			}
			busy = busy || more
		}
		if s.active() && s.due.Before(next) {
			next = s.due
		}
	}
	if err := f.commitInTime(ctx); err != nil {
		return false, next, err
	}
	if due := f.commitDue(); due.Before(next) {
		next = due
	}
	return busy, next, nil
}

// over reports whether standard input was all, and has ended.
func (f *Follower) over() bool {
	for _, p := range f.o.Paths {
		if p != stdinPath {
			return false
		}
	}
	return !slices.ContainsFunc(f.streams, (*stream).active)
}

// sleep waits until the instant, or something happens.
func (f *Follower) sleep(ctx context.Context, until time.Time) error {
	if !until.After(f.o.Clock.Now()) {
		return nil
	}
	t := f.o.Clock.NewTimerAt(until)
	defer t.Stop()
	select {
	case <-t.C():
	case <-f.hints.wake:
	case <-ctx.Done():
	}
	return nil
}

// takeHints makes due what the system says has changed.
func (f *Follower) takeHints(now time.Time) {
	paths, names := f.hints.take()
	if names {
		f.scanDue = now
	}
	if len(paths) == 0 {
		return
	}
	for _, s := range f.streams {
		if s.active() && s.pipe == nil && (paths[s.path] || paths[s.real]) {
			if at := s.turned.Add(f.o.PollLeast); at.Before(s.due) {
				s.due = at
			}
			s.wait = 0
		}
	}
}

// commitDue is when the next commit is due: often while there is something, and
// less often the larger the position is.
func (f *Follower) commitDue() time.Time {
	every := f.o.CommitEvery
	if !f.dirty && f.rows == 0 {
		every = max(every, time.Second) // heartbeats want the horizon
	}
	return f.commitAt.Add(every + time.Duration(len(f.position))*time.Microsecond)
}

func (f *Follower) commitInTime(ctx context.Context) error {
	if f.rows < f.o.CommitRows && f.o.Clock.Now().Before(f.commitDue()) {
		return nil
	}
	return f.commit(ctx)
}

// commit makes what was read since the last time one group with its position. A
// disk that refuses is tried again: nothing is lost meanwhile, files wait.
func (f *Follower) commit(ctx context.Context) error {
	now := f.o.Clock.Now()
	f.horizon = horizonOf(f.horizon, now.UnixMicro(), f.scanned, f.o.Disorder.Microseconds(), f.bounds(now))
	f.o.Publisher.Horizon(f.horizon)
	position := f.position
	if f.dirty || f.rows > 0 {
		position = f.where()
	}
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		err := f.o.Publisher.Commit(ctx, position)
		if err == nil {
			break
		}
		if ctx.Err() != nil || !transient(err) {
			return fmt.Errorf("follow: %w", err)
		}
		f.m.troubles.WithLabelValues("").Inc()
		f.o.Logger.Error().Err(err).Msg("what was read cannot be committed; trying again")
		if err := f.o.Clock.Sleep(ctx, pause); err != nil {
			return err
		}
	}
	f.samples.committed()
	f.position, f.rows, f.dirty, f.commitAt = position, 0, false, f.o.Clock.Now()
	return nil
}

// where is the position of all streams now.
func (f *Follower) where() []byte {
	p := position{horizon: f.horizon, scanned: f.scanned, streams: slices.Clone(f.asleep)}
	for _, s := range f.streams {
		if s.pipe == nil {
			p.streams = append(p.streams, s.known)
		}
	}
	return p.append(make([]byte, 0, len(f.position)+256))
}

// bounds is what the streams say about rows to come. Those that cannot be read
// say nothing, or they would hold up everything for ever.
func (f *Follower) bounds(now time.Time) []bound {
	var all []bound
	for _, s := range f.streams {
		switch {
		case !s.active() || s.trouble != "" || s.parser == nil && s.sampled > 0:
			continue
		case s.state == lost && now.Sub(s.searched) > f.o.Settle:
			continue
		}
		all = append(all, bound{behind: s.behind, last: s.last, checked: s.checked})
	}
	return all
}

// transient reports whether the disk may take later what it refuses now.
func transient(err error) bool {
	return !errors.Is(err, publisher.ErrSync) && (errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT))
}
