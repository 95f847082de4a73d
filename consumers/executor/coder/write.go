package coder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"penstock/consumers/executor/coder/catalog"
	"penstock/consumers/executor/coder/object"
	"penstock/consumers/executor/coder/queue"
)

// source is what a version is written from, and what becomes of it.
type source struct {
	key  string
	body io.Reader
	size int64 // below 0: unknown
	// lease is memory that was taken already, or nil.
	lease *lease
	// verify is told of the body before anything is visible; commit makes the version
	// visible in one transaction.
	verify func(size int64, s Sums) error
	commit func(ctx context.Context, v *object.Version, e ending) error
}

// ending is what a commit tells the catalog of a write's blobs.
type ending struct {
	intent    string
	unwritten []object.Place
	rest      catalog.Rest
}

// writing is a version that is being written.
type writing struct {
	c     *Coder
	src   source
	lease *lease
	enc   *object.Encoder
	res   reservation
	shape object.Shape // as it is written
	free  sync.Once

	ctx  context.Context // of the tasks of a single segment, until late
	late context.CancelCauseFunc

	planned bool          // tasks were made, so that something may be written
	spare   []queue.Task  // for stores of which nothing is expected, if one that lives fails
	ended   chan struct{} // closed when no task is queued or running

	mu      sync.Mutex
	windows []*window
	decided bool
	begun   []bool // of each blob: a store was told of it
	landed  []bool // of each blob: its store has it

	pour *pour           // of objects of several segments
	slab *object.Segment // what pours
}

// write stores a version. It returns ErrBody, ErrBusy, ErrTooFew, ErrTooLarge, ErrClosed
// and the errors of the body, of verify and of commit; nothing is visible then, and what
// was written is deleted in the background.
func (c *Coder) write(ctx context.Context, src source) error {
	if src.size < 0 {
		f, size, err := c.spool(ctx, src.body)
		if err != nil {
			return err
		}
		defer f.Close()
		src.body, src.size = f, size
	}
	var l *lease
	var err error
	if src.lease != nil {
		l = src.lease.pass()
	} else if l, err = c.memory.take(ctx, c.code, src.size, 1); err != nil {
		return err
	}
	w := &writing{c: c, src: src, lease: l, ended: make(chan struct{})}
	if w.enc, err = l.encoder(); err != nil {
		l.give()
		return err
	}
	if w.res, err = c.reserve.take(ctx); err != nil {
		w.release()
		return err
	}
	if err := w.begin(ctx); err != nil {
		return w.giveUp(err)
	}
	return nil
}

// begin reads the first segment, which says how the others go.
func (w *writing) begin(ctx context.Context) error {
	if err := w.enc.Reset(w.src.key, w.res.id); err != nil {
		return fmt.Errorf("%w: %w", ErrKey, err)
	}
	w.enc.Expect(w.src.size)
	in := &body{ctx: ctx, r: w.src.body, want: w.src.size}
	shape, err := w.enc.Next(in)
	switch {
	case errors.Is(err, io.EOF):
		close(w.ended)
		if err := w.verify(); err != nil {
			return err
		}
		return w.commit(ctx, object.Info{}, catalog.Rest{})
	case err != nil:
		return bodyError(err)
	case w.enc.Ended():
		return w.single(ctx, shape)
	}
	shape.Size = w.src.size
	if err := shape.Validate(); err != nil {
		return bodyError(err)
	}
	return w.several(ctx, shape, in)
}

func bodyError(err error) error {
	if errors.Is(err, object.ErrTooLarge) {
		return fmt.Errorf("%w: %w", ErrTooLarge, err)
	}
	return fmt.Errorf("body: %w", err)
}

func (w *writing) verify() error {
	if w.src.verify == nil {
		return nil
	}
	md5, sha := w.enc.Sums()
	return w.src.verify(w.src.size, Sums{MD5: md5, SHA256: sha})
}

// single writes an object of one segment: one request, of the code that is chosen.
func (w *writing) single(ctx context.Context, shape object.Shape) error {
	if err := w.verify(); err != nil {
		return err
	}
	r := &queue.Request{Op: queue.Write, More: w.more, Ended: func() { close(w.ended) }}
	r.Plan = func(code queue.Code) queue.Plan {
		p := w.plan(shape, code)
		if r.Rest = queue.Finish; w.shape.Staged() {
			r.Rest = queue.Cancel // those blobs are not where they are meant to be
		}
		return p
	}
	w.c.occupy(w.res.id)
	w.ctx, w.late = context.WithCancelCause(w.c.ctx)
	if err := w.c.queue.Do(ctx, r); err != nil {
		w.late(err)
		return queueError(err)
	}
	if w.shape.Staged() {
		w.decide()
	}
	info := object.Info{Cut: w.shape.Cut}
	rest := catalog.Rest{Staged: w.shape.Staged()}
	info.Places, rest.Lacking = w.lie()
	return w.commit(ctx, info, rest)
}

// plan chooses the blobs that are written side by side.
func (w *writing) plan(shape object.Shape, code queue.Code) queue.Plan {
	var n, k int
	code = w.c.sized(queue.Write, code, shape.Layout, shape.Size)
	w.shape, n, k = shape.Write(code.N, code.K)
	if shape.Layout == object.Spread {
		n = shape.N
	}
	n = max(n, min(w.shape.Blobs(), k+w.c.o.Durability.Extra))
	w.planned = true
	w.begun, w.landed = make([]bool, w.shape.Blobs()), make([]bool, w.shape.Blobs())
	need := w.c.o.Durability.need(n, k)
	tasks := make([]queue.Task, 0, n)
	living := w.c.living(w.res.places[:n], need)
	for i, place := range w.res.places[:n] {
		t := w.task(w.shape, i, place, n, k)
		if slices.Contains(living, i) {
			tasks = append(tasks, t)
		} else {
			w.spare = append(w.spare, t)
		}
	}
	return queue.Plan{Tasks: tasks, Need: need}
}

// more is the request's More: when a store fails that was thought to live, others are
// asked.
func (w *writing) more() (t queue.Task, ok bool) {
	if len(w.spare) == 0 {
		return t, false
	}
	t, w.spare = w.spare[0], w.spare[1:]
	return t, true
}

// living are the places whose stores live, if these are as many as are needed, else all:
// a write isn't held up by a store of which nothing is expected. What it lacks is
// repaired when the store is back.
func (c *Coder) living(places []object.Place, need int) []int {
	var all, living []int
	for i, p := range places {
		all = append(all, i)
		if s := c.named[p.Store]; s != nil && !s.isDead() {
			living = append(living, i)
		}
	}
	if len(living) < need {
		return all
	}
	return living
}

// task makes the task that puts a blob of one segment.
func (w *writing) task(shape object.Shape, blob int, place object.Place, n, k int) queue.Task {
	size := shape.BlobBytes()
	return queue.Task{Store: place.Store, Bytes: size, N: n, K: k, Run: func(ctx context.Context) error {
		w.mu.Lock()
		if w.decided {
			w.mu.Unlock()
			return errShut
		}
		in := &window{b: w.enc.Blob(shape, blob)}
		w.windows = append(w.windows, in)
		w.begun[blob] = true
		w.mu.Unlock()
		ctx, cancel := context.WithCancelCause(ctx)
		stop := context.AfterFunc(w.ctx, func() { cancel(context.Cause(w.ctx)) })
		err := w.c.putBlob(ctx, place, in, size)
		stop()
		cancel(nil)
		if err != nil {
			return err
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.landed[blob] = true
		return nil
	}}
}

// putBlob puts a blob into its store, and notes how the store did.
func (c *Coder) putBlob(ctx context.Context, place object.Place, r io.Reader, size int64) error {
	s := c.named[place.Store]
	if s == nil {
		return fmt.Errorf("%w: %s", errNoStore, place.Store)
	}
	ctx, cancel := c.limited(ctx)
	defer cancel()
	began := c.o.Clock.Now()
	err := c.putInto(ctx, s, place.Key, r, size)
	c.note(ctx, s, began, size, err)
	if err != nil {
		return fmt.Errorf("%s: %w", place.Store, err)
	}
	return nil
}

// lie says where the blobs lie now. Of a staged version those that haven't landed have
// no place; of others they have one, and lack.
func (w *writing) lie() (places []object.Place, lacking []int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	places = make([]object.Place, w.shape.Blobs())
	for i := range places {
		switch {
		case w.landed[i]:
			places[i] = w.res.places[i]
		case !w.shape.Staged():
			places[i] = w.res.places[i]
			lacking = append(lacking, i)
		}
	}
	return places, lacking
}

// commit makes the version visible, and begins what is left to do.
func (w *writing) commit(ctx context.Context, info object.Info, rest catalog.Rest) error {
	info.Time = w.c.o.Clock.Now()
	v, err := w.enc.Finish(info)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrHeaders, err)
	}
	e := ending{intent: w.res.id, rest: rest, unwritten: w.unwritten()}
	claimed := !rest.None() && w.c.claim(v.ID) // before others can see it
	if err := w.src.commit(ctx, v, e); err != nil {
		if claimed {
			w.c.unclaim(v.ID)
		}
		return err
	}
	w.c.start(func() { w.after(v, rest) })
	return nil
}

// unwritten are the places to which no store was asked to write, nor will be but for
// blobs of the version.
func (w *writing) unwritten() (places []object.Place) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, p := range w.res.places {
		if i >= len(w.begun) || !w.begun[i] {
			places = append(places, p)
		}
	}
	return places
}

// decide takes the memory away from tasks that still run.
func (w *writing) decide() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.decided = true
	for _, in := range w.windows {
		in.shut()
	}
	w.windows = nil
}

// release gives the memory back. No task uses it.
func (w *writing) release() {
	w.free.Do(func() {
		w.decide()
		if w.slab != nil {
			w.lease.keepSlab(w.slab)
		}
		w.lease.keepEncoder(w.enc)
		w.lease.give()
	})
}

// giveUp ends a write that failed, and returns its error.
func (w *writing) giveUp(err error) error {
	if w.late != nil {
		w.late(errShut)
	}
	w.release()
	if !w.planned {
		w.c.vacate(w.res.id)
		w.c.reserve.put(w.res)
		return err
	}
	w.c.start(func() {
		<-w.ended
		w.c.abandon(w.res.id)
		w.c.vacate(w.res.id)
		w.c.kick()
	})
	return err
}
