package topology

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/rs/zerolog"

	"penstock/consumers/executor/locations"
	"penstock/infra/bus"
	"penstock/pipeline/config"
	"penstock/schemas/control"
)

// LocationImport is the operator's word for where owners' data is, said on a bus
// on which deciders and movers may be at work.
type LocationImport struct {
	Client *bus.Client
	Table  *locations.KV
	By     string
	// Options are those of the import; UnderWay and Tell are set here.
	Options locations.ImportOptions
	// Sizes lists each owner's objects in an import of what stores hold, so that
	// the decider knows how much there is to move; Listed, if set, is called with
	// the owners that are listed, of how many.
	Sizes  bool
	Listed func(done, of int)
}

// complete finds out which moves are under way, and makes deciders hear of what
// is imported.
func (i *LocationImport) complete(ctx context.Context) (locations.ImportOptions, error) {
	o := i.Options
	moves, err := locations.UnderWay(ctx, i.Client)
	if err != nil {
		return o, err
	}
	o.UnderWay = func(owner string) bool { _, is := moves[owner]; return is }
	o.Tell = locations.NewTeller(i.Client, i.By, o.Now).Tell
	return o, nil
}

// From imports a CSV or Parquet file.
func (i LocationImport) From(ctx context.Context, r io.Reader) (locations.Imported, error) {
	o, err := i.complete(ctx)
	if err != nil {
		return locations.Imported{}, err
	}
	return locations.Import(ctx, r, i.Table, o)
}

// FromStores imports what the configured stores hold.
func (i LocationImport) FromStores(ctx context.Context, cfg *config.Config, log zerolog.Logger) (done locations.Imported, err error) {
	stores, err := ConfiguredStores(ctx, cfg, i.Client, log)
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, stores.Close()) }()
	o, err := i.complete(ctx)
	if err != nil {
		return done, err
	}
	rows, err := locations.FromStores(ctx, stores)
	if err != nil {
		return done, err
	}
	if i.Sizes {
		if err := rows.Measure(ctx, i.Listed); err != nil {
			return done, err
		}
	}
	return locations.ImportRows(ctx, rows, i.Table, o)
}

// Pin pins an owner where its data is, or takes the pin off, and returns its
// entry. An owner without one is where the decider has learned that it is;
// ErrUnknownOwner if it has not.
func Pin(ctx context.Context, i LocationImport, owner string, pinned bool, log zerolog.Logger) (control.Location, error) {
	l, revision, err := i.Table.Get(ctx, owner)
	if err != nil {
		return l, err
	}
	if revision == 0 {
		if l.Site, err = learned(ctx, i.Client, owner, log); err != nil {
			return l, err
		}
	}
	o, err := i.complete(ctx)
	if err != nil {
		return l, err
	}
	done, err := locations.ImportRows(ctx, locations.RowsOf(locations.Row{Owner: owner, Site: l.Site, Pinned: pinned, HasPinned: true}), i.Table, o)
	if err != nil {
		return l, err
	}
	for _, b := range done.Bad {
		return l, b.Err
	}
	l, _, err = i.Table.Get(ctx, owner)
	return l, err
}

// learned is where the decider knows an owner's data to be.
func learned(ctx context.Context, client *bus.Client, owner string, log zerolog.Logger) (string, error) {
	e, err := Explain(ctx, client, owner, log)
	switch {
	case errors.Is(err, bus.ErrNoMessage), errors.Is(err, ErrUnknownOwner), err == nil && e.Site == "":
		return "", fmt.Errorf("owner %.80q: %w; say where its data is: penstock locations import", owner, ErrUnknownOwner)
	case err != nil:
		return "", err
	}
	return e.Site, nil
}
