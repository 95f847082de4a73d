package aggregator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"penstock/consumers/aggregator/ledger"
	"penstock/consumers/aggregator/rollup"
	"penstock/infra/bus"
	"penstock/schemas/event"
	"penstock/schemas/subject"
	"penstock/schemas/window"
)

const (
	// tickEvery is how often timed flushes are looked at, unless they are due
	// more often.
	tickEvery = time.Second
	// renewAfter is the age at which a commit is renewed, so that no limit of
	// age takes a subject's last one.
	renewAfter = 24 * time.Hour
)

// worker has one group on one partition.
type worker struct {
	opts      *Options
	partition int
	advice    Advice
	log       zerolog.Logger
	standing  *standing

	// Of the session at hand.
	book    *ledger.Ledger
	state   rollup.State
	reader  *bus.Reader
	last    uint64 // sequence of the last commit in WINDOWS
	flight  chan landed
	began   time.Time // when the last flush began
	unread  int       // bytes of events read since
	ticked  bool
	leaving bool // the advice names another
	parked  bool // a reject waits to be covered, so that it isn't sent again

	decoder  event.Decoder
	gauges   event.GaugeDecoder
	requests event.Requests
	gauge    event.Gauges
	zeros    []uint8

	told   window.Account // of the session, as the metrics know it
	stored time.Time
	wait   uint64
	newest int64
}

// session claims the partition and adds up until the context ends or it cannot
// go on. It returns errFenced, errReleased, or what Run returns.
func (w *worker) session(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w.does("claims the partition")
	if err := w.claim(ctx); err != nil {
		return err
	}
	if err := w.open(ctx); err != nil {
		return err
	}
	err := w.loop(ctx)
	cancel()
	if w.flight != nil {
		<-w.flight // its goroutine ends with the context
		w.flight = nil
	}
	w.reader.Close()
	return err
}

// claim takes the partition from the last commit, by a commit of our own.
func (w *worker) claim(ctx context.Context) error {
	m, err := w.lastCommit(ctx)
	if err != nil {
		return err
	}
	cfg := ledger.ConfigOf(w.opts.Group, w.partition, w.opts.IdleTimeout.Microseconds(), w.opts.Client.Widths())
	w.book, w.last = ledger.New(cfg), m.Seq
	if m.Seq > 0 {
		c, err := window.CommitOf(m.Header, m.Data)
		if err != nil {
			return fmt.Errorf("%s sequence %d: %w: %w", m.Subject, m.Seq, ErrCommit, err)
		}
		w.book = ledger.Restore(cfg, c)
	}
	if w.state, err = rollup.New(w.opts.Group, w.opts.Client.Widths()); err != nil {
		return err
	}
	w.state.Columns(&w.decoder)
	w.told, w.newest, w.unread = w.book.Total(), window.NullInt, 0
	w.ticked, w.leaving, w.parked = false, false, false
	w.flight = make(chan landed, 1)
	w.launch(ctx)
	l := <-w.flight
	w.flight = nil
	if err := w.land(l); err != nil {
		return err
	}
	w.log.Info().Uint64("covered", w.book.Covered()).Str("watermark", watermarkField(w.book.Watermark())).
		Msg("claimed the partition")
	return nil
}

// lastCommit returns the last message on the partition's subject, from the
// leader; its sequence is 0 if there is none. It tries until it has it.
func (w *worker) lastCommit(ctx context.Context) (bus.Msg, error) {
	s := subjectOf(w.opts.Group, w.partition)
	for wait := retryLeast; ; wait = min(2*wait, retryMost) {
		m, err := w.opts.Client.Last(ctx, subject.WindowsStream, s)
		if err == nil {
			return m, nil
		}
		if errors.Is(err, bus.ErrNoMessage) {
			return bus.Msg{Subject: s}, nil
		}
		if err := w.again(ctx, err, "cannot read the last commit", wait); err != nil {
			return bus.Msg{}, err
		}
	}
}

// again logs a failure and waits, until the context ends.
func (w *worker) again(ctx context.Context, err error, what string, wait time.Duration) error {
	if ctx.Err() != nil || errors.Is(err, bus.ErrClosed) {
		return fmt.Errorf("%s: %w", what, err)
	}
	w.log.Warn().Err(err).Dur("wait", wait).Msg(what)
	w.suffers(what)
	return w.opts.Clock.Sleep(ctx, wait)
}

// open starts reading after the covered sequence. Where messages are gone they
// are booked as lost; a sequence beyond the stream is an error.
func (w *worker) open(ctx context.Context) error {
	from := w.book.Covered() + 1
	for wait := retryLeast; ; wait = min(2*wait, retryMost) {
		r, err := w.opts.Client.Read(ctx, subject.EventsStream, subject.EventsOf(w.partition), from)
		if err == nil {
			w.reader = r
			return nil
		}
		var gone *bus.ErrTrimmed
		var beyond *bus.ErrBeyond
		switch {
		case errors.As(err, &beyond):
			return err
		case errors.As(err, &gone):
			w.trimmed(gone)
			from = gone.First
			continue
		}
		if err := w.again(ctx, err, "cannot read events", wait); err != nil {
			return err
		}
	}
}

func (w *worker) trimmed(gone *bus.ErrTrimmed) {
	w.count(TrimmedUnder, 1)
	w.log.Error().Uint64("covered", w.book.Covered()).Uint64("first", gone.First).
		Msg("events left the stream before they were read: lost, windows incomplete")
	w.book.Trimmed()
}

// loop reads, adds up and flushes.
func (w *worker) loop(ctx context.Context) error {
	tick := w.opts.Clock.NewTicker(min(tickEvery, w.opts.FlushEvery))
	defer tick.Stop()
	w.does(working)
	w.suffers("")
	for {
		if w.flight == nil && w.due() {
			w.flight = make(chan landed, 1)
			w.launch(ctx)
		}
		if w.leaving && w.flight == nil {
			return errReleased
		}
		in := w.reader.C()
		if w.leaving || w.flight != nil && w.full() {
			in = nil // until the flush in flight has landed
		}
		select {
		case m, ok := <-in:
			if !ok {
				if err := w.ended(ctx); err != nil {
					return err
				}
				continue
			}
			if err := w.take(ctx, &m); err != nil {
				return err
			}
		case l := <-w.flight:
			w.flight = nil
			if err := w.land(l); err != nil {
				return err
			}
		case <-tick.C():
			w.tick()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// full reports whether no more may be added up while a flush is in flight.
func (w *worker) full() bool {
	return w.state.Size() >= 2*w.opts.FlushBytes || w.book.Windows() >= MaxWindows
}

// ended deals with a reader that came to an end.
func (w *worker) ended(ctx context.Context) error {
	err := w.reader.Err()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var gone *bus.ErrTrimmed
	if !errors.As(err, &gone) {
		if err == nil {
			err = bus.ErrClosed
		}
		return fmt.Errorf("reading events: %w", err)
	}
	return w.open(ctx)
}

// tick makes timed flushes due and tells the metrics.
func (w *worker) tick() {
	w.ticked = true
	w.leaving = w.leaving || !w.advice.Mine(w.opts.Group, w.partition)
	w.tell()
	if w.reader.Interrupted() {
		w.does("makes its reader anew")
	} else {
		w.does(working)
	}
	w.opts.Metrics.Progress(w.opts.Group, w.partition, Progress{
		Pending: w.wait, Stored: w.stored, Newest: w.newest, Watermark: w.book.Watermark(),
	})
}

// tell hands the rows since the last time to the metrics.
func (w *worker) tell() {
	now := w.book.Total()
	if now == w.told {
		return
	}
	w.opts.Metrics.Rows(w.opts.Group, w.partition, window.Account{
		Received: now.Received - w.told.Received, Counted: now.Counted - w.told.Counted,
		Late: now.Late - w.told.Late, Duplicate: now.Duplicate - w.told.Duplicate,
		Malformed: now.Malformed - w.told.Malformed, Quarantined: now.Quarantined - w.told.Quarantined,
		LostBatches: now.LostBatches - w.told.LostBatches,
	})
	w.told = now
}
