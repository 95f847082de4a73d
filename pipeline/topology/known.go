package topology

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"penstock/consumers/executor/locations"
	"penstock/infra/bus"
	"penstock/schemas/control"
)

// readLocations reads where owners' data is before the first row, from CSV or
// Parquet as penstock locations export writes it. Rows that cannot be used are told; with
// strict they fail.
func (r *running) readLocations(ctx context.Context) error {
	if r.Locations == "" {
		return nil
	}
	f, err := os.Open(r.Locations)
	if err != nil {
		return fmt.Errorf("locations: %w", err)
	}
	defer f.Close()
	// Entries without a time bear one that is the same at every attempt.
	o := locations.ImportOptions{Now: time.Unix(0, 0).UTC(), Strict: r.Strict}
	for _, s := range r.Config.Sites {
		o.Sites = append(o.Sites, s.Name)
	}
	r.stored = map[string]int64{}
	o.Tell = func(_ context.Context, entries []locations.Entry) error {
		for _, e := range entries {
			if e.Bytes > 0 {
				r.stored[e.Owner] = e.Bytes
			}
		}
		return nil
	}
	table := locations.NewMemory()
	done, err := locations.Import(ctx, f, table, o)
	if err != nil {
		return fmt.Errorf("%s: %w", r.Locations, err)
	}
	for i, b := range done.Bad {
		if i == maxNamed {
			r.Note("malformed: and more")
			break
		}
		r.Note(fmt.Sprintf("malformed: %s line %d: %v", r.Locations, b.Line, b.Err))
	}
	r.known = map[string]control.Location{}
	return table.List(ctx, func(owner string, l control.Location) error {
		r.known[owner] = l
		return nil
	})
}

// knowLocations puts the locations that were read into the bus's own table, from
// which movers take versions and sites. What is there already has been moved by
// an earlier attempt.
func (r *running) knowLocations(ctx context.Context) error {
	if len(r.known) == 0 {
		return nil
	}
	client, err := r.bus.Client(ctx, "locations")
	if err != nil {
		return err
	}
	defer client.Close()
	table, err := locations.Open(ctx, client)
	if err != nil {
		return err
	}
	all := make([]locations.Entry, 0, len(r.known))
	for owner, l := range r.known {
		all = append(all, locations.Entry{Owner: owner, Location: l})
	}
	for some := range slices.Chunk(all, bus.MaxBatch) {
		err := table.SetAll(ctx, some)
		if errors.Is(err, locations.ErrConflict) || errors.Is(err, locations.ErrSingly) {
			err = setEach(ctx, table, some)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// setEach writes the entries that are not there yet.
func setEach(ctx context.Context, table *locations.KV, entries []locations.Entry) error {
	for _, e := range entries {
		if _, err := table.Set(ctx, e.Owner, e.Location, 0); err != nil && !errors.Is(err, locations.ErrConflict) {
			return err
		}
	}
	return nil
}
