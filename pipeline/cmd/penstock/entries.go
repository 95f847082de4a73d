package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"text/tabwriter"

	"penstock/infra/bus"
	"penstock/infra/gate"
)

type entriesCmd struct {
	List   entriesListCmd   `cmd:"" help:"List the entry points that movers ask to hold writes, and whether each answers."`
	Forget entriesForgetCmd `cmd:"" help:"Take an entry point out of the register that will not come back, so that moves from its site do not fail for it."`
}

type entriesListCmd struct{ busFlags }

// Run lists the register of entry points.
func (c *entriesListCmd) Run(con *console) error {
	b, client, err := c.open(con, "cli")
	if err != nil {
		return err
	}
	entries, err := gate.Entries(con.ctx, client)
	if err = errors.Join(err, b.Close()); err != nil {
		return err
	}
	slices.SortFunc(entries, func(a, b gate.Entry) int {
		return cmp.Or(cmp.Compare(a.Site, b.Site), cmp.Compare(a.Name, b.Name))
	})
	if con.json {
		return json.NewEncoder(con.out).Encode(append([]gate.Entry{}, entries...))
	}
	if len(entries) == 0 {
		fmt.Fprintln(con.out, "no entry point is registered (see entry.barrier)")
		return nil
	}
	w := tabwriter.NewWriter(con.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "site\tname\tstate")
	for _, e := range entries {
		state := "silent: moves from its site fail"
		if e.Alive {
			state = "answers"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", e.Site, e.Name, state)
	}
	return w.Flush()
}

type entriesForgetCmd struct {
	busFlags
	Site  string `arg:"" help:"The site of the entry point."`
	Entry string `arg:"" help:"Its name (its --name)."`
	Force bool   `help:"Even if it answers: it will register again within seconds, and until then moves do not wait for its writes."`
}

// Run forgets an entry point. One that lives is not forgotten by mistake: writes
// would be let in there that no mover waits for.
func (c *entriesForgetCmd) Run(con *console) error {
	b, client, err := c.open(con, "cli")
	if err != nil {
		return err
	}
	return errors.Join(c.forget(con, client), b.Close())
}

func (c *entriesForgetCmd) forget(con *console, client *bus.Client) error {
	if !c.Force {
		entries, err := gate.Entries(con.ctx, client)
		if err != nil {
			return err
		}
		if slices.Contains(entries, gate.Entry{Site: c.Site, Name: c.Entry, Alive: true}) {
			return fmt.Errorf("%w: entry point %s of %s answers; stop it, or --force", errUsage, c.Entry, c.Site)
		}
	}
	found, err := gate.Forget(con.ctx, client, c.Site, c.Entry)
	if err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("%w: no entry point %s of %s is registered (see penstock entries list)", errUsage, c.Entry, c.Site)
	}
	if con.json {
		return json.NewEncoder(con.out).Encode(gate.Entry{Site: c.Site, Name: c.Entry})
	}
	_, err = fmt.Fprintf(con.out, "entry point %s of %s is forgotten: movers do not ask it any more\n", c.Entry, c.Site)
	return err
}
