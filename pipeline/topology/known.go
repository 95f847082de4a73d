package topology

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"penstock/consumers/executor/locations"
	"penstock/schemas/control"
)

// readLocations reads where owners' data is before the first row, from CSV as
// penstock locations export writes it. Rows that cannot be used are told; with
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
	for owner, l := range r.known {
		if _, err := table.Set(ctx, owner, l, 0); err != nil && !errors.Is(err, locations.ErrConflict) {
			return err
		}
	}
	return nil
}
