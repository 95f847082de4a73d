package inforce

import (
	"errors"
	"fmt"

	"penstock/consumers/executor"
)

// Restore brings into force what the file holds, but tables whose ttl is over and those
// of scopes that are gone, and says whether there was any. It is called once, before
// anything else: what the bus has takes their place when Resume reads it. ErrFile and
// Kind.ErrTable hold nothing up.
func (t *Target[T]) Restore() (some bool, err error) {
	if t.file == nil {
		return false, nil
	}
	all, err := t.file.Read()
	if err != nil {
		t.o.Metrics.Count(executor.Rejected, "held-file", 1)
		return false, fmt.Errorf("%w: %w", ErrFile, err)
	}
	now := t.o.Clock.Now()
	for i := range all {
		h := &all[i]
		switch holder := t.holders[h.Scope]; {
		case holder == nil:
			t.o.Metrics.Count(executor.Rejected, "held-"+t.kind.Scope+"-gone", 1)
		case !h.Until.After(now):
			t.o.Metrics.Count(executor.Rejected, "held-ttl-over", 1)
		default:
			if e := holder.Put(&h.Table, h.Epoch, h.Until); e != nil {
				t.o.Metrics.Count(executor.Rejected, "held", 1)
				err = errors.Join(err, fmt.Errorf("%s: %s %.80q: %w", t.o.File, t.kind.Scope, h.Scope, e))
				continue
			}
			some = true
		}
	}
	return some, err
}

// keep writes the file when something else is in force than it holds.
func (t *Target[T]) keep() {
	if t.file == nil {
		return
	}
	all := []Held[T]{}
	for _, scope := range t.scopes() {
		if h, some := t.holders[scope].Held(); some {
			h.Scope, h.Until = scope, h.Until.UTC()
			all = append(all, h)
		}
	}
	if err := t.file.Keep(all); err != nil {
		t.o.Metrics.Count(executor.Retried, "held-file", 1)
		t.o.Logger.Warn().Err(err).Msg("the tables in force can't be kept over a restart; it is tried again")
	}
}
