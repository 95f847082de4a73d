package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"penstock/consumers/executor/locations"
	"penstock/consumers/executor/mover"
	"penstock/infra/bus"
	"penstock/infra/clock"
	"penstock/pipeline/config"
	"penstock/pipeline/topology"
	"penstock/schemas/control"
)

type locationsCmd struct {
	Import locationsImportCmd `cmd:"" help:"Say where owners' data is, at any time, from CSV or Parquet (owner,site and perhaps version,state,since,pinned,bytes) or by what the stores hold."`
	Export locationsExportCmd `cmd:"" help:"Print the locations as CSV, or write them to a file. Only owners that were moved, imported or pinned have one; all others are where they were first seen."`
	Verify locationsVerifyCmd `cmd:"" help:"List the stores and compare: each owner has exactly one live copy, where its location says, and the movers whose journals are at hand know of all others."`
	Pin    locationsPinCmd    `cmd:"" help:"Let no decision move an owner's data."`
	Unpin  locationsUnpinCmd  `cmd:"" help:"Let decisions move an owner's data again."`
}

type locationsImportCmd struct {
	busFlags
	File       string `arg:"" optional:"" help:"The CSV or Parquet file, told apart by its content; - for standard input."`
	FromStores bool   `help:"Take what the configured stores hold instead of a file: an owner is where its only copy is that may be written to. Owners with two are told."`
	Sizes      bool   `help:"With --from-stores: list each owner's objects too, so that limits.bytes, per_gb and egress count what is stored of it. It takes as long as listing all stores does."`
	Config     string `short:"c" help:"The configuration: sites that it lacks are faults, and it names the stores. Without it the sites are those by which placement decides now, if it has decided." type:"existingfile"`
	Overwrite  bool   `help:"Let the import contradict what is known."`
	Strict     bool   `help:"Write nothing if a row cannot be used."`
}

// Run imports locations.
func (c *locationsImportCmd) Run(con *console) error {
	if c.FromStores == (c.File != "") {
		return fmt.Errorf("%w: name a file, or --from-stores", errUsage)
	}
	if c.FromStores && c.Config == "" {
		return fmt.Errorf("%w: --from-stores takes the stores of --config", errUsage)
	}
	if c.Sizes && !c.FromStores {
		return fmt.Errorf("%w: --sizes lists what --from-stores imports; in a file the column bytes says it", errUsage)
	}
	var cfg *config.Config
	if c.Config != "" {
		var err error
		if cfg, err = config.Load(c.Config); err != nil {
			return err
		}
	}
	return c.with(con, func(client *bus.Client, t *locations.KV) (err error) {
		o := locations.ImportOptions{Now: clock.System().Now().UTC(), Overwrite: c.Overwrite, Strict: c.Strict, Progress: con.progress("rows")}
		if cfg != nil {
			for _, s := range cfg.Sites {
				o.Sites = append(o.Sites, s.Name)
			}
		} else if o.Sites, err = topology.SitesInForce(con.ctx, client, control.Placement); err != nil {
			return err
		}
		imports := topology.LocationImport{Client: client, Table: t, By: operatorName(), Options: o, Sizes: c.Sizes, Listed: con.progress("owners listed")}
		var done locations.Imported
		if c.FromStores {
			done, err = imports.FromStores(con.ctx, cfg, con.logger())
			return c.tell(con, "owner", done, err)
		}
		in := os.Stdin
		if c.File != "-" {
			if in, err = os.Open(c.File); err != nil {
				return fmt.Errorf("locations: %w", err)
			}
			defer in.Close()
		}
		done, err = imports.From(con.ctx, in)
		return c.tell(con, c.File+" line", done, err)
	})
}

// progress shows how far an import has come, on a terminal.
func (con *console) progress(what string) func(done, of int) {
	if !con.terminal || con.json {
		return nil
	}
	return func(done, of int) {
		end := "\r"
		if done == of {
			end = "\n"
		}
		fmt.Fprintf(con.err, "%d of %d %s%s", done, of, what, end)
	}
}

// tell prints the account of an import. Rows that were not used are a failure
// only if nothing was to be used without them.
func (c *locationsImportCmd) tell(con *console, where string, done locations.Imported, err error) error {
	if con.json {
		type bad struct {
			Line int    `json:"line"`
			Why  string `json:"why"`
		}
		out := struct {
			Rows      int   `json:"rows"`
			Written   int   `json:"written"`
			Unchanged int   `json:"unchanged"`
			Unused    int   `json:"unused"`
			Bad       []bad `json:"bad"`
		}{done.Rows, done.Written, done.Unchanged, done.Unused, []bad{}}
		for _, b := range done.Bad {
			out.Bad = append(out.Bad, bad{b.Line, b.Err.Error()})
		}
		return errors.Join(err, json.NewEncoder(con.out).Encode(out))
	}
	for _, b := range done.Bad {
		fmt.Fprintf(con.err, "malformed: %s %d: %v\n", where, b.Line, b.Err)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(con.out, "%d rows: %d written, %d known already, %d unused\n", done.Rows, done.Written, done.Unchanged, done.Unused)
	return err
}

// with opens the table of locations on the bus.
func (f *busFlags) with(con *console, work func(client *bus.Client, t *locations.KV) error) (err error) {
	b, client, err := f.open(con, "locations")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	t, err := locations.Open(con.ctx, client)
	if err != nil {
		return err
	}
	return work(client, t)
}

type locationsExportCmd struct {
	busFlags
	Out string `short:"o" help:"The file to write; Parquet if its name ends in .parquet, else CSV." placeholder:"FILE" type:"path"`
}

// Run exports locations. A file is there whole or not at all.
func (c *locationsExportCmd) Run(con *console) error {
	if c.Out == "" && con.json {
		return fmt.Errorf("%w: --json tells of a file that --out names; without one an export is CSV", errUsage)
	}
	return c.with(con, func(_ *bus.Client, t *locations.KV) error {
		if c.Out == "" {
			_, err := locations.Export(con.ctx, con.out, t, locations.CSV)
			return err
		}
		format := locations.CSV
		if strings.HasSuffix(c.Out, ".parquet") {
			format = locations.Parquet
		}
		n := 0
		err := writeWhole(c.Out, func(w io.Writer) (err error) {
			n, err = locations.Export(con.ctx, w, t, format)
			return err
		})
		if err != nil {
			return err
		}
		if con.json {
			return json.NewEncoder(con.out).Encode(map[string]any{"locations": n, "file": c.Out})
		}
		_, err = fmt.Fprintf(con.out, "%d locations written to %s\n", n, c.Out)
		return err
	})
}

// writeWhole writes a file by way of a temporary one beside it.
func writeWhole(name string, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if err := errors.Join(write(f), f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	return nil
}

type locationsPinCmd struct {
	busFlags
	Owner string `arg:"" help:"Whose data."`
}

// Run pins an owner where its data is.
func (c *locationsPinCmd) Run(con *console) error { return c.pin(con, c.Owner, true) }

type locationsUnpinCmd struct {
	busFlags
	Owner string `arg:"" help:"Whose data."`
}

// Run takes the pin off an owner.
func (c *locationsUnpinCmd) Run(con *console) error { return c.pin(con, c.Owner, false) }

func (f *busFlags) pin(con *console, owner string, pinned bool) error {
	return f.with(con, func(client *bus.Client, t *locations.KV) error {
		l, err := topology.Pin(con.ctx, topology.LocationImport{
			Client: client, Table: t, By: operatorName(), Options: locations.ImportOptions{Now: clock.System().Now().UTC()},
		}, owner, pinned, con.logger())
		if err != nil {
			return err
		}
		if con.json {
			return json.NewEncoder(con.out).Encode(map[string]any{"owner": owner, "location": l})
		}
		said := "not pinned: decisions may move it"
		if pinned {
			said = "pinned: no decision moves it"
		}
		_, err = fmt.Fprintf(con.out, "%s: at %s, version %d; %s from the next window on\n", owner, l.Site, l.Version, said)
		return err
	})
}

type locationsVerifyCmd struct {
	busFlags
	Config string   `short:"c" required:"" help:"The configuration that names the sites and their stores." type:"existingfile"`
	Movers []string `help:"State folders of other executors on the same stores, whose mover journals count too; may be given several times." placeholder:"STATE" type:"path" sep:"none"`
	Replay bool     `help:"Verify the stores that a replay made under the state folder, not the configured ones."`
}

var errLocations = errors.New("the stores do not hold what locations says")

// Run compares the stores with the table.
func (c *locationsVerifyCmd) Run(con *console) error {
	cfg, err := config.Load(c.Config)
	if err != nil {
		return err
	}
	retired, looked, err := c.retirements()
	if err != nil {
		return err
	}
	return c.with(con, func(client *bus.Client, t *locations.KV) (err error) {
		var stores topology.Stores
		if c.Replay {
			stores, err = topology.ReplayStores(cfg, c.State)
		} else {
			stores, err = topology.ConfiguredStores(con.ctx, cfg, client, con.logger())
		}
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, stores.Close()) }()
		r, err := locations.Verify(con.ctx, t, stores, retired)
		if err != nil {
			return err
		}
		if con.json {
			err = json.NewEncoder(con.out).Encode(r)
		} else {
			fmt.Fprintf(con.out, "%d owners, %d with exactly one live copy, %d retired copies, %d incoming\n", r.Owners, r.Live, r.Retired, r.Incoming)
			unjournalled := 0
			for _, p := range r.Problems {
				fmt.Fprintf(con.out, "owner %q at %s: %s: %s\n", p.Owner, p.Site, p.Fault, p.Text)
				if p.Fault == locations.Unjournalled {
					unjournalled++
				}
			}
			if unjournalled > 0 {
				fmt.Fprintf(con.out, "%d retired copies are in no journal under %s; if another executor retired them, name its state folder with --movers\n",
					unjournalled, strings.Join(looked, ", "))
			}
		}
		if err == nil && len(r.Problems) > 0 {
			err = errLocations
		}
		return err
	})
}

// retirements are those of the movers' journals at hand, and the state folders that
// have them; nil if none is: which copies a mover is going to delete is not known
// then. At an address the movers may be anywhere, so a folder counts only if it was
// named.
func (c *locationsVerifyCmd) retirements() (retired func(owner, site string) bool, looked []string, err error) {
	dirs := c.Movers
	if c.NATS == "" || c.Replay || !isDefaultState(c.State) {
		dirs = append([]string{c.State}, dirs...)
	}
	var known []func(owner, site string) bool
	for i, state := range dirs {
		dir := filepath.Join(state, "mover")
		_, err := os.Stat(dir)
		switch named := i >= len(dirs)-len(c.Movers); {
		case errors.Is(err, os.ErrNotExist) && named:
			return nil, nil, fmt.Errorf("%w: --movers %s: it has no mover's journal", errUsage, state)
		case errors.Is(err, os.ErrNotExist):
			continue
		case err != nil:
			return nil, nil, fmt.Errorf("mover journal: %w", err)
		}
		one, err := mover.Retirements(dir)
		if err != nil {
			return nil, nil, err
		}
		known, looked = append(known, one), append(looked, state)
	}
	if len(known) == 0 {
		return nil, nil, nil
	}
	return func(owner, site string) bool {
		for _, one := range known {
			if one(owner, site) {
				return true
			}
		}
		return false
	}, looked, nil
}
