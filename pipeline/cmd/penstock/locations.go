package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"penstock/consumers/executor/locations"
	"penstock/consumers/executor/mover"
	"penstock/infra/clock"
	"penstock/infra/objectstore"
	"penstock/pipeline/config"
	"penstock/pipeline/topology"
)

type locationsCmd struct {
	Import locationsImportCmd `cmd:"" help:"Say where owners' data is, from CSV (owner,site and perhaps version,state,since,pinned), before the first decision."`
	Export locationsExportCmd `cmd:"" help:"Print all locations that are known as CSV."`
	Verify locationsVerifyCmd `cmd:"" help:"List the stores and compare: each owner has exactly one live copy, where its location says, and the mover under --state knows of all others."`
}

type locationsImportCmd struct {
	busFlags
	File      string `arg:"" help:"The CSV, - for standard input."`
	Config    string `short:"c" help:"The configuration: sites that it lacks are faults." type:"existingfile"`
	Overwrite bool   `help:"Let the file contradict what is known."`
	Strict    bool   `help:"Write nothing if a row cannot be used."`
}

// Run imports locations.
func (c *locationsImportCmd) Run(con *console) (err error) {
	in := os.Stdin
	if c.File != "-" {
		if in, err = os.Open(c.File); err != nil {
			return fmt.Errorf("locations: %w", err)
		}
		defer in.Close()
	}
	o := locations.ImportOptions{Now: clock.System().Now().UTC(), Overwrite: c.Overwrite, Strict: c.Strict}
	if c.Config != "" {
		cfg, err := config.Load(c.Config)
		if err != nil {
			return err
		}
		for _, s := range cfg.Sites {
			o.Sites = append(o.Sites, s.Name)
		}
	}
	return c.with(con, func(t *locations.KV) error {
		done, err := locations.Import(con.ctx, in, t, o)
		for _, b := range done.Bad {
			fmt.Fprintf(con.err, "malformed: %s line %d: %v\n", c.File, b.Line, b.Err)
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(con.out, "%d rows: %d written, %d known already, %d unused\n", done.Rows, done.Written, done.Unchanged, done.Unused)
		return err
	})
}

// with opens the table of locations on the bus.
func (f *busFlags) with(con *console, work func(t *locations.KV) error) (err error) {
	b, client, err := f.open(con, "locations")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	t, err := locations.Open(con.ctx, client)
	if err != nil {
		return err
	}
	return work(t)
}

type locationsExportCmd struct{ busFlags }

// Run exports locations.
func (c *locationsExportCmd) Run(con *console) error {
	return c.with(con, func(t *locations.KV) error {
		_, err := locations.Export(con.ctx, con.out, t)
		return err
	})
}

type locationsVerifyCmd struct {
	busFlags
	Config string `short:"c" required:"" help:"The configuration that names the sites and their stores." type:"existingfile"`
	Replay bool   `help:"Verify the stores that a replay made under the state folder, not the configured ones."`
}

var errLocations = errors.New("the stores do not hold what locations says")

// Run compares the stores with the table.
func (c *locationsVerifyCmd) Run(con *console) error {
	cfg, err := config.Load(c.Config)
	if err != nil {
		return err
	}
	var stores map[string]objectstore.Store
	if c.Replay {
		stores, err = topology.ReplayStores(cfg, c.State)
	} else {
		stores, err = topology.ConfiguredStores(con.ctx, cfg, nil, con.logger())
	}
	if err != nil {
		return err
	}
	retired, err := c.retirements()
	if err != nil {
		return err
	}
	return c.with(con, func(t *locations.KV) error {
		r, err := locations.Verify(con.ctx, t, stores, retired)
		if err != nil {
			return err
		}
		if con.json {
			err = json.NewEncoder(con.out).Encode(r)
		} else {
			fmt.Fprintf(con.out, "%d owners, %d with exactly one live copy, %d retired copies, %d incoming\n", r.Owners, r.Live, r.Retired, r.Incoming)
			for _, p := range r.Problems {
				fmt.Fprintf(con.out, "owner %q at %s: %s: %s\n", p.Owner, p.Site, p.Fault, p.Text)
			}
		}
		if err == nil && len(r.Problems) > 0 {
			err = errLocations
		}
		return err
	})
}

// retirements are those of the mover's journal under the state folder; nil if it
// is not at hand: which copies a mover is going to delete is not known then. At
// an address the movers may be anywhere, so a folder counts only if it was named.
func (c *locationsVerifyCmd) retirements() (func(owner, site string) bool, error) {
	if c.NATS != "" && !c.Replay {
		unnamed, err := filepath.Abs(defaultState)
		if err != nil {
			return nil, fmt.Errorf("state folder: %w", err)
		}
		if c.State == unnamed {
			return nil, nil
		}
	}
	dir := filepath.Join(c.State, "mover")
	_, err := os.Stat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("mover journal: %w", err)
	}
	return mover.Retirements(dir)
}
