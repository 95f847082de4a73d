package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"penstock/producers/replay/pace"
	"penstock/producers/replay/reorder"
	"penstock/producers/replay/route"
	"penstock/producers/replay/writes"
	"penstock/schemas/control"
	"penstock/schemas/event"
	"penstock/schemas/window"
)

// Summary is what a replay came to. Rows and windows are of the whole run, those
// of earlier attempts included.
type Summary struct {
	Run     string
	Resumed bool // an earlier attempt had begun it

	Read, Sent, InTime, Late, Future, Malformed int64

	First, Last time.Time // of rows in time; zero if there were none
	Windows     int64     // in which a row in time was sent
	Decided     int64     // windows with a decision record
	Moves       int64     // that were to be applied
	Outcomes    map[control.Status]int64

	Order  reorder.Stats
	Lag    pace.Lag
	Writes writes.Stats
	Verify writes.VerifyReport
	Took   time.Duration
}

// Run replays the input to its end, going on where an earlier attempt in the
// same state folder ended. On failure the summary is of what was done.
func Run(ctx context.Context, o Options) (Summary, error) {
	if err := o.complete(); err != nil {
		return Summary{}, err
	}
	r, err := open(ctx, o)
	if err != nil {
		return Summary{}, err
	}
	err = r.run(ctx)
	return r.summarise(), r.close(ctx, err)
}

// run is a replay under way.
type run struct {
	o         Options
	cursor    *Cursor
	resumed   int64 // end of the last window that was answered before
	buffer    *reorder.Buffer
	table     *route.Table
	ledger    *writes.Ledger
	answers   *answers
	publisher Publisher
	source    Source
	rejects   *rejects
	pacer     pace.Pacer
	began     time.Time
	start     time.Time // of the schedule
	saved     time.Time // when the cursor was
	until     int64
	bad       error // of a strict run

	width     int64
	windowEnd int64 // of the open window
	open      bool
	expected  bool // the open window will be decided
	over      bool // until was reached
	first     int64
	last      int64
	sum       Summary
}

func open(ctx context.Context, o Options) (*run, error) {
	f := o.fingerprint()
	name := o.Run
	if name == "" {
		name = f.RunID()
	}
	c, err := openCursor(o.StateDir, f, name)
	if err != nil {
		return nil, err
	}
	if w := o.Client.Widths().Of(window.Traffic); o.Width%w != 0 {
		return nil, fmt.Errorf("%w: width %v on a bus with windows of %v", ErrOption, o.Width, w)
	}
	r := &run{
		o: o, cursor: c, resumed: c.end(), width: o.Width.Microseconds(), pacer: pace.Pacer{Speed: o.Speed},
		buffer: reorder.New(reorder.Options{Disorder: o.Disorder, MaxSkew: o.MaxSkew, Limit: o.ReorderLimit}),
		sum:    Summary{Run: name, Resumed: c.Window != nil, Outcomes: map[control.Status]int64{}},
		began:  o.Clock.Now(), until: never,
	}
	if !o.Until.IsZero() {
		r.until = o.Until.UnixMicro()
	}
	if err := r.assemble(ctx); err != nil {
		return nil, r.close(ctx, err)
	}
	return r, nil
}

func (r *run) assemble(ctx context.Context) error {
	var err error
	places := make([]route.Site, len(r.o.Sites))
	stores := make([]writes.Site, len(r.o.Sites))
	for i, s := range r.o.Sites {
		places[i] = route.Site{Name: s.Name, Lat: s.Lat, Lon: s.Lon}
		stores[i] = writes.Site{Name: s.Name, Store: s.Store}
	}
	r.table, err = route.New(route.Options{Sites: places, Mode: r.o.Route, Allowed: r.o.Allowed, Imported: r.o.Imported})
	if err != nil {
		return err
	}
	r.ledger, err = writes.Open(writes.Options{Dir: r.o.StateDir, Locator: r.table, Sites: stores})
	if err != nil {
		return err
	}
	r.rejects = &rejects{client: r.o.Client, entry: r.o.Entry, run: r.sum.Run, skip: r.cursor.Rejected}
	if r.answers, err = openAnswers(ctx, r.o.Client, r.o.Clock, r.o.Stall); err != nil {
		return err
	}
	if r.o.NoWait {
		r.answers.done = func(owner, to string, version uint64) { r.table.Apply(owner, to, version) }
	}
	if r.publisher, err = r.o.NewPublisher(ctx, r.sum.Run, r.cursor.Acked); err != nil {
		return fmt.Errorf("publisher: %w", err)
	}
	if r.source, err = r.o.Open(func(b Bad) { r.malformed(ctx, &b) }); err != nil {
		return fmt.Errorf("input: %w", err)
	}
	return nil
}

// close gives back what the run holds and returns why it ended. After a failure
// nothing more is waited for: the next attempt sends it again.
func (r *run) close(ctx context.Context, err error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err != nil {
		cancel()
	}
	var errs []error
	if r.source != nil {
		errs = append(errs, r.source.Close())
	}
	if r.publisher != nil {
		errs = append(errs, r.publisher.Close(ctx))
	}
	if r.answers != nil {
		r.answers.close()
	}
	if err != nil {
		return err
	}
	return errors.Join(errs...)
}

func (r *run) malformed(ctx context.Context, b *Bad) {
	r.sum.Malformed++
	r.publisher.Malformed(1)
	if r.o.Strict && r.bad == nil {
		r.bad = fmt.Errorf("%w: %s line %d: field %s: got %q, expected %s", ErrStrict, b.File, b.Line, b.Field, b.Got, b.Expected)
	}
	if err := r.rejects.sample(ctx, b); err != nil {
		r.o.Logger.Warn().Err(err).Str("file", b.File).Int64("line", b.Line).Msg("sample of a malformed line is not on REJECTS")
	}
}

func (r *run) run(ctx context.Context) error {
	if err := r.input(ctx); err != nil {
		return err
	}
	if err := r.closeWindow(ctx); err != nil {
		return err
	}
	if err := r.end(ctx); err != nil {
		return err
	}
	return r.pacer.Check(r.o.MaxLag)
}

const (
	// progressRows is how many rows lie between two words on progress.
	progressRows = 1 << 16
	// lookEvery is how many rows lie between two looks at the context.
	lookEvery = 1 << 6
)

// input reads and sends rows to the end, or to until.
func (r *run) input(ctx context.Context) error {
	var row event.Request
	for !r.over {
		err := r.source.Next(&row)
		if r.bad != nil {
			return r.bad
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("input, after %d rows: %w", r.sum.Read, err)
		}
		r.sum.Read++
		if r.sum.Read%lookEvery == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			if r.sum.Read%progressRows == 0 {
				r.progress(false)
			}
		}
		if err := r.buffer.Push(&row); err != nil {
			return err
		}
		if err := r.drain(ctx); err != nil {
			return err
		}
	}
	if r.over {
		return nil
	}
	r.buffer.Finish()
	return r.drain(ctx)
}

func (r *run) drain(ctx context.Context) error {
	for !r.over {
		row := r.buffer.Next()
		if row == nil {
			return nil
		}
		var err error
		if row.Mark == event.InTime {
			err = r.emit(ctx, row)
		} else {
			err = r.emitMarked(ctx, row)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// emit sends a row that is in time. They come in order.
func (r *run) emit(ctx context.Context, row *event.Request) error {
	if r.until != never && row.Time >= r.until {
		r.over = true
		return nil
	}
	if !r.open || row.Time >= r.windowEnd {
		if err := r.turn(ctx, row.Time); err != nil {
			return err
		}
	}
	recorded := row.ToSite
	owner := int32(route.None)
	if !isTask(row) {
		owner = r.table.Route(row)
	}
	if owner != route.None {
		r.expected = true
		if row.Op == event.Write {
			r.ledger.Add(owner, row.Bytes)
		}
	} else if !isTask(row) && row.User != "" && row.HasPlace() {
		r.expected = true
	}
	if r.sum.InTime == 0 {
		r.first = row.Time
	}
	r.sum.InTime++
	r.last = row.Time
	if r.o.Speed != pace.Max && r.windowEnd > r.resumed {
		if err := r.pace(ctx, row.Time); err != nil {
			return err
		}
	}
	r.publisher.Horizon(row.Time)
	return r.send(ctx, row, recorded)
}

func (r *run) emitMarked(ctx context.Context, row *event.Request) error {
	if row.Mark == event.Late {
		r.sum.Late++
	} else {
		r.sum.Future++
	}
	recorded := row.ToSite
	if !isTask(row) {
		r.table.RouteMarked(row)
	}
	return r.send(ctx, row, recorded)
}

// isTask says whether a row is a chunk task: a part of some request, it is in nobody's
// traffic and stays with the store that it went to.
func isTask(row *event.Request) bool { return event.IsTask(row.Outcome) }

func (r *run) send(ctx context.Context, row *event.Request, recorded string) error {
	if r.o.Observer != nil {
		r.o.Observer.Row(row, recorded)
	}
	if err := r.publisher.Send(ctx, row); err != nil {
		return fmt.Errorf("send a row: %w", err)
	}
	r.sum.Sent++
	return nil
}

// pace waits until a row is due. Windows that were answered before are not
// waited for: the schedule begins with the first row after them.
func (r *run) pace(ctx context.Context, t int64) error {
	now := r.o.Clock.Now()
	if r.start.IsZero() {
		r.start = now
	}
	due := r.pacer.Due(t)
	elapsed := now.Sub(r.start)
	if wait := r.pacer.Pace(elapsed, due); wait > 0 {
		if err := r.o.Clock.Sleep(ctx, wait); err != nil {
			return err
		}
		elapsed = r.o.Clock.Now().Sub(r.start)
	}
	r.pacer.Sent(elapsed, due)
	return nil
}

// end sends the end mark, verifies the stores and closes the cursor.
func (r *run) end(ctx context.Context) error {
	mark := int64(0)
	if r.sum.InTime > 0 {
		mark = r.o.Client.Widths().End(r.last, r.o.Width)
	}
	if err := r.publisher.End(ctx, mark); err != nil {
		return fmt.Errorf("end of the run: %w", err)
	}
	if r.o.BeforeVerify != nil {
		if err := r.o.BeforeVerify(ctx); err != nil {
			return err
		}
	}
	if r.o.NoWait {
		if err := r.answers.drain(ctx, r.o.Client); err != nil {
			return err
		}
		r.applyAnswers(r.windowEnd)
	}
	var err error
	if r.sum.Verify, err = r.ledger.Verify(ctx); err != nil {
		return err
	}
	r.cursor.Finished = true
	return r.cursor.write(r.o.StateDir)
}

func (r *run) summarise() Summary {
	s := r.sum
	if s.InTime > 0 {
		s.First, s.Last = time.UnixMicro(r.first).UTC(), time.UnixMicro(r.last).UTC()
	}
	s.Order, s.Lag, s.Writes, s.Took = r.buffer.Stats(), r.pacer.Lag(), r.ledger.Stats(), r.o.Clock.Now().Sub(r.began)
	return s
}

func (r *run) progress(waiting bool) {
	if r.o.Progress == nil {
		return
	}
	p := Progress{Rows: r.sum.Read, Windows: r.sum.Windows, Waiting: waiting}
	if r.sum.InTime > 0 {
		p.Time = time.UnixMicro(r.last).UTC()
	}
	r.o.Progress(p)
}
