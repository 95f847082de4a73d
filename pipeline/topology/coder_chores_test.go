package topology

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"penstock/consumers/executor/coder"
	"penstock/consumers/executor/coder/chunks"
	"penstock/infra/clock"
	"penstock/infra/telemetry"
	"penstock/pipeline/config"
)

// untidy is a store in which puts were left.
type untidy struct {
	*chunks.Memory
	asked chan time.Time
}

func (u *untidy) Tidy(_ context.Context, before time.Time) (int, error) {
	u.asked <- before
	return 3, errors.New("and more is there")
}

// A coder scrubs by its configuration's clock, goes on after a scrub that failed, and has
// stores tidied of what was left a day ago or earlier.
func TestChoresOfACoder(t *testing.T) {
	registry := telemetry.NewRegistry()
	metrics, err := telemetry.New(registry, clock.System())
	if err != nil {
		t.Fatal(err)
	}
	c := &Coder{Alone: Alone{Logger: zerolog.Nop()}}
	v := &alone{Alone: &c.Alone, parts: NewParts(zerolog.Nop()), registry: registry, metrics: metrics}
	store := &untidy{chunks.NewMemory("east"), make(chan time.Time, 1)}
	scrubbed := make(chan coder.ScrubOptions)
	failed := false
	all := func(ctx context.Context, o coder.ScrubOptions) (coder.Report, error) {
		select {
		case scrubbed <- o:
		case <-ctx.Done():
			return coder.Report{}, ctx.Err()
		}
		if !failed {
			failed = true
			return coder.Report{}, errors.New("a store went away")
		}
		return coder.Report{}, nil
	}
	began := time.Now()
	c.chores(v, &config.Coder{Name: "objects", Site: "us-east", Scrub: config.Duration(time.Millisecond)}, blobStores{store, chunks.NewMemory("west")}, all)
	for range 2 {
		if o := <-scrubbed; !o.Repair || !o.Orphans {
			t.Errorf("scrubbed with %+v, expected to repair and to look for orphans", o)
		}
	}
	if before := <-store.asked; before.After(began.Add(time.Minute-24*time.Hour)) || before.Before(began.Add(-25*time.Hour)) {
		t.Errorf("tidied of what is older than %v at %v", before, began)
	}
	if err := v.parts.Stop(); err != nil {
		t.Error(err)
	}
}
