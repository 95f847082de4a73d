package coder

import (
	"context"
	"errors"
	"slices"

	"penstock/consumers/executor/coder/catalog"
	"penstock/consumers/executor/coder/object"
	"penstock/consumers/executor/coder/queue"
)

// after does what is left of a write once it is visible: it waits for the blobs that are
// on their way, and brings what is staged or lacks into its intended coding from memory
// if there is plenty of that. Else it is done later, from what the stores have. The
// version is claimed if there is anything left.
func (w *writing) after(v *object.Version, rest catalog.Rest) {
	defer w.c.kick() // deletions wait for all that follows
	defer w.c.vacate(v.ID)
	defer w.release()
	w.linger()
	if rest.None() {
		return
	}
	defer w.c.unclaim(v.ID)
	if !rest.Staged {
		if rest.Lacking = w.note(v, rest.Lacking); len(rest.Lacking) == 0 {
			return
		}
	}
	if w.pour != nil || v.Shape.Layout == object.Spread || !w.c.memory.spare() {
		return
	}
	m := w.c.mending(v, rest, "write")
	if len(m.targets) == 0 {
		return // their stores are dead
	}
	if err := w.fromMemory(w.c.ctx, m); err != nil && w.c.ctx.Err() == nil {
		w.c.retried("write", v.ID, err)
	}
}

// linger waits for the tasks that still run. Those that hold connections for longer than
// the patience are told to end.
func (w *writing) linger() {
	if w.late == nil {
		<-w.ended
		return
	}
	patience := w.c.o.Clock.NewTimer(w.c.o.Patience)
	defer patience.Stop()
	select {
	case <-w.ended:
	case <-patience.C():
		w.late(errLagging)
		w.c.count(EventDropped, "lagging", 1)
		<-w.ended
	}
	w.late(nil)
}

// note tells the catalog which blobs have landed since the commit; it gives those that
// lack still.
func (w *writing) note(v *object.Version, lacking []int) (left []int) {
	if w.pour != nil {
		copy(w.landed, w.pour.have())
	}
	w.mu.Lock()
	var landed []int
	failed := int64(0)
	for _, i := range lacking {
		switch {
		case w.landed[i]:
			landed = append(landed, i)
			continue
		case w.begun[i]:
			failed++
		}
		left = append(left, i)
	}
	w.mu.Unlock()
	if failed > 0 {
		w.c.count(EventDropped, "failed", failed)
	}
	if len(landed) == 0 {
		return left
	}
	err := w.c.catalog.Landed(w.c.ctx, v.ID, landed...)
	if err != nil && !errors.Is(err, catalog.ErrNoVersion) && w.c.ctx.Err() == nil {
		w.c.retried("landed", v.ID, err)
		return lacking
	}
	return left
}

// fromMemory puts the targets from the segment that is still there.
func (w *writing) fromMemory(ctx context.Context, m *mending) error {
	_, _, release, err := w.c.catalog.HoldVersion(m.v.ID)
	if errors.Is(err, catalog.ErrNoVersion) {
		return nil // overwritten already
	}
	if err != nil {
		return err
	}
	defer release()
	if err := m.begin(ctx); err != nil {
		return err
	}
	ended := make(chan struct{})
	planned := false
	w.ctx, w.late = context.WithCancelCause(ctx)
	defer w.late(nil)
	w.mu.Lock()
	w.decided = false
	w.landed = make([]bool, max(len(w.landed), m.targets[0].shape.Blobs()))
	w.begun = slices.Clone(w.landed)
	w.mu.Unlock()
	err = w.c.queue.Do(ctx, &queue.Request{
		Op: queue.Write, Background: true, Rest: queue.Finish, Ended: func() { close(ended) },
		Plan: func(queue.Code) queue.Plan {
			planned = true
			tasks := make([]queue.Task, len(m.targets))
			for i, t := range m.targets {
				tasks[i] = w.task(t.shape, t.blob, t.place, len(tasks), len(tasks))
			}
			return queue.Plan{Tasks: tasks, Need: len(tasks)}
		},
	})
	if planned {
		<-ended
	}
	for i, t := range m.targets {
		m.landed[i] = w.landed[t.blob]
	}
	if err != nil && !slices.Contains(m.landed, true) {
		w.c.abandon(m.intent)
		return err
	}
	_, err = m.conclude(context.WithoutCancel(ctx))
	return err
}
