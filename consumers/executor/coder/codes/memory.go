package codes

import (
	"errors"
	"fmt"
	"time"

	"penstock/consumers/executor"
	"penstock/schemas/control"
)

// held is a table in the file.
type held struct {
	Coder string              `json:"coder"`
	Epoch uint64              `json:"epoch"`
	Until time.Time           `json:"until"`
	Table control.CodingTable `json:"table"`
}

// Restore brings into force what the file holds, but tables whose ttl is over and those
// of coders that are gone, and says whether there was any. It is called once, before
// anything else: what the bus has takes their place when Resume reads it. ErrFile and
// ErrTable hold nothing up.
func (t *Target) Restore() (some bool, err error) {
	if t.o.File == "" {
		return false, nil
	}
	all, _, err := t.file.Read()
	if err != nil {
		t.o.Metrics.Count(executor.Rejected, "held-file", 1)
		return false, fmt.Errorf("%w: %w", ErrFile, err)
	}
	now := t.o.Clock.Now()
	for i := range all {
		h := &all[i]
		switch chooser := t.o.Choosers[h.Coder]; {
		case chooser == nil:
			t.o.Metrics.Count(executor.Rejected, "held-coder-gone", 1)
		case !h.Until.After(now):
			t.o.Metrics.Count(executor.Rejected, "held-ttl-over", 1)
		default:
			if e := chooser.Set(&h.Table, h.Epoch, h.Until); e != nil {
				t.o.Metrics.Count(executor.Rejected, "held", 1)
				err = errors.Join(err, fmt.Errorf("%s: coder %.80q: %w", t.o.File, h.Coder, e))
				continue
			}
			some = true
		}
	}
	return some, err
}

// keep writes the file when something else is in force than it holds.
func (t *Target) keep() {
	if t.o.File == "" {
		return
	}
	all := []held{}
	for _, name := range t.names() {
		if s := t.o.Choosers[name].State(); !s.Until.IsZero() {
			all = append(all, held{Coder: name, Epoch: s.Epoch, Until: s.Until.UTC(), Table: s.Table})
		}
	}
	if err := t.file.Keep(all); err != nil {
		t.o.Metrics.Count(executor.Retried, "held-file", 1)
		t.o.Logger.Warn().Err(err).Msg("the tables in force can't be kept over a restart; it is tried again")
	}
}
