package movertest

import (
	"context"
	"slices"
	"sync"
	"time"

	"penstock/infra/clock"
	"penstock/infra/objectstore"
)

// watch notes when barriers are held.
type watch struct {
	mu    sync.Mutex
	spans []span
	open  map[*watchedHold]time.Time
}

type span struct{ from, to time.Time }

// watched is a store whose holds are noted.
type watched struct {
	objectstore.Store
	w *watch
}

func (s watched) Hold(ctx context.Context, owner, version string) (objectstore.Held, error) {
	h, err := s.Store.Hold(ctx, owner, version)
	if err != nil {
		return nil, err
	}
	held := &watchedHold{Held: h, w: s.w}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	s.w.open[held] = clock.System().Now()
	return held, nil
}

type watchedHold struct {
	objectstore.Held
	w *watch
}

func (h *watchedHold) Release() {
	h.Held.Release()
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	if from, ok := h.w.open[h]; ok {
		h.w.spans = append(h.w.spans, span{from, clock.System().Now()})
		delete(h.w.open, h)
	}
}

// longest is the longest hold.
func (w *watch) longest() (d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.spans {
		d = max(d, s.to.Sub(s.from))
	}
	return d
}

// waited is for how long of a write's time a barrier was held, at most: of the
// holds that it met, the longest.
func (w *watch) waited(write span) (d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range slices.Backward(w.spans) {
		if s.to.Before(write.from) {
			break
		}
		from, to := s.from, s.to
		if from.Before(write.from) {
			from = write.from
		}
		if to.After(write.to) {
			to = write.to
		}
		d = max(d, to.Sub(from))
	}
	return d
}
