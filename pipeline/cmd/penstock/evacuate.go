package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"penstock/consumers/executor/locations"
	"penstock/infra/bus"
	"penstock/infra/clock"
	"penstock/pipeline/config"
	"penstock/pipeline/topology"
	"penstock/schemas/control"
)

type evacuateCmd struct {
	busFlags
	Site    string        `arg:"" help:"The site to empty."`
	Off     bool          `help:"Take it back: decisions may use the site again. What has moved away stays away."`
	Wait    bool          `help:"Wait until nothing remains, and say how far it is."`
	Timeout time.Duration `help:"Most time to wait; the site goes on being emptied after it." placeholder:"D"`
	Config  string        `short:"c" help:"The configuration: the site's own store is listed too, for owners that nobody knows." type:"existingfile"`
}

var (
	// errEvacuation ends an evacuation at which something failed or stands in the
	// way. The site goes on being emptied: what is mended is moved.
	errEvacuation = errors.New("the site is not empty, and what remains does not move")
	// errWaited ends a wait that took too long. The same.
	errWaited = errors.New("the site is not empty yet")
)

const (
	// lookAtLeast and lookShare pace the looks of a wait: a look at much data must
	// not be all that the bus has to do.
	lookAtLeast = 500 * time.Millisecond
	lookShare   = 5
	// lookAtMost is after how long there is a look although nothing has come: the
	// store may have changed.
	lookAtMost = 30 * time.Second
	// looksMost is how many looks running may fail, lookAgain what is between them.
	looksMost = 30
	lookAgain = 2 * time.Second
	// shownHeld is how many owners are listed for a person.
	shownHeld = 50
)

// Run empties a site, or takes that back. Run again, it goes on where it was.
func (c *evacuateCmd) Run(con *console) error {
	key := control.EvacuateKey(c.Site)
	if c.Off {
		if c.Wait {
			return fmt.Errorf("%w: --off has nothing to wait for", errUsage)
		}
		// One that is on is taken back whatever the sites are by now.
		if _, _, err := c.isOn(con); err != nil {
			return err
		}
		return c.set(con, key, control.Switch{}, c.Site+": no longer being emptied", " from the next window on")
	}
	if c.Timeout != 0 && !c.Wait {
		return fmt.Errorf("%w: --timeout is of --wait", errUsage)
	}
	if c.Wait && c.NATS == "" {
		return fmt.Errorf("%w: --wait works on a running Penstock: name its bus with --nats", errUsage)
	}
	var cfg *config.Config
	if c.Config != "" {
		var err error
		if cfg, err = config.Load(c.Config); err != nil {
			return err
		}
		if !slices.ContainsFunc(cfg.Sites, func(s config.Site) bool { return s.Name == c.Site }) {
			return fmt.Errorf("%w: %s has no site %q", errUsage, c.Config, c.Site)
		}
	}
	on, decided, err := c.isOn(con)
	if err != nil {
		return err
	}
	if !decided {
		fmt.Fprintf(con.err, "note: nothing was decided yet on this bus, so that its sites are not known: %q is taken as it stands\n", c.Site)
	}
	quiet := *con
	if con.json {
		quiet.out = io.Discard // One object is what a machine reads.
	}
	switch {
	case on && !con.json:
		fmt.Fprintf(con.out, "%s: is being emptied already\n", c.Site)
	case !on:
		if err := c.set(&quiet, key, control.Switch{On: true}, c.Site+": being emptied", " from the next window on; penstock evacuate "+c.Site+" --off takes it back"); err != nil {
			return err
		}
	}
	return c.with(con, func(client *bus.Client, t *locations.KV) (err error) {
		v := &topology.Evacuations{Client: client, Table: t, Logger: con.logger()}
		if cfg != nil {
			stores, err := topology.ConfiguredStores(con.ctx, cfg, client, con.logger())
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, stores.Close()) }()
			v.Store = stores[c.Site]
		}
		return c.follow(con, v)
	})
}

// isOn reports whether the site is being emptied already, and whether anything was
// decided by which sites are known. One that decisions do not know is refused: it
// would be called empty, which a slip of the pen is not.
func (c *evacuateCmd) isOn(con *console) (on, decided bool, err error) {
	b, client, err := c.open(con, "operator")
	if err != nil {
		return false, false, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	s, err := topology.EvacuationSince(con.ctx, client, c.Site)
	if err != nil {
		return false, false, err
	}
	on = s != nil && s.On
	sites, err := topology.SitesInForce(con.ctx, client, control.Placement, control.Split)
	if err != nil {
		return false, false, err
	}
	if len(sites) > 0 && !slices.Contains(sites, c.Site) && (!c.Off || !on) {
		return false, true, fmt.Errorf("%w: there is no site %q; the last decision knew %s", errUsage, c.Site, strings.Join(sites, ", "))
	}
	return on, len(sites) > 0, nil
}

// follow looks once, or until the site is empty, nothing moves any more, or the
// time is up.
func (c *evacuateCmd) follow(con *console, v *topology.Evacuations) error {
	clk := clock.System()
	start := clk.Now()
	said := ""
	for confirmed, failed := false, 0; ; {
		began := clk.Now()
		mark, e, err := look(con, v, c.Site)
		if err != nil && c.Wait && con.ctx.Err() == nil && failed < looksMost {
			// What moves goes on; a bus that was away, or was trimmed under the
			// look, shows the rest next time.
			failed++
			fmt.Fprintf(con.err, "penstock: cannot look, trying again: %v\n", err)
			if err := clk.Sleep(con.ctx, lookAgain); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		failed = 0
		if line := howFar(e); line != said && !con.json {
			said = line
			fmt.Fprintln(con.out, line)
		}
		stuck := e.Stuck()
		switch {
		case !c.Wait:
			return c.end(con, e, stuck)
		case e.Empty() && (confirmed || e.Decided), stuck:
			return c.end(con, e, stuck)
		case c.Timeout > 0 && clk.Now().Sub(start) >= c.Timeout:
			return errors.Join(c.end(con, e, false), errWaited)
		}
		// A window that was being decided when the switch was set may still have
		// sent somebody here: nothing must remain twice.
		confirmed = e.Empty()
		pause := max(lookAtLeast, lookShare*clk.Now().Sub(began))
		if err := c.pause(con, v, mark, pause, start); err != nil {
			return err
		}
	}
}

func look(con *console, v *topology.Evacuations, site string) (mark string, e *topology.Evacuation, err error) {
	if mark, err = v.Changes(con.ctx); err == nil {
		e, err = v.Look(con.ctx, site)
	}
	return mark, e, err
}

// pause waits at least a while, and then until something has come.
func (c *evacuateCmd) pause(con *console, v *topology.Evacuations, mark string, least time.Duration, start time.Time) error {
	clk := clock.System()
	for waited := time.Duration(0); waited < max(lookAtMost, least); waited += lookAtLeast {
		if err := clk.Sleep(con.ctx, lookAtLeast); err != nil {
			return err
		}
		if c.Timeout > 0 && clk.Now().Sub(start) >= c.Timeout {
			return nil
		}
		if waited+lookAtLeast < least {
			continue
		}
		if now, err := v.Changes(con.ctx); err != nil || now != mark {
			return err
		}
	}
	return nil
}

// howFar is one line on how far it is.
func howFar(e *topology.Evacuation) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d remaining", e.Site, e.Remaining)
	add := func(n int, what string) {
		if n > 0 {
			fmt.Fprintf(&b, ", %d %s", n, what)
		}
	}
	add(e.Moving, "under way")
	add(e.Coming, "still on their way there")
	add(len(e.Held), "held")
	add(e.NoData, "more were asked for and have no data there")
	for _, what := range slices.Sorted(maps.Keys(e.Waiting)) {
		add(e.Waiting[what], "waiting: "+what)
	}
	switch {
	case e.Empty():
	case !e.Decided:
		b.WriteString("; no window has been decided since it was asked for")
	case e.Blocked != "":
		b.WriteString("; NOTHING MOVES: " + e.Blocked)
	}
	return b.String()
}

// end says how it came out; it is a failure if something stands in the way.
func (c *evacuateCmd) end(con *console, e *topology.Evacuation, stuck bool) error {
	var err error
	if con.json {
		err = json.NewEncoder(con.out).Encode(e)
	} else {
		for i, h := range e.Held {
			if i == shownHeld {
				fmt.Fprintf(con.out, "and %d more; --json lists all\n", len(e.Held)-i)
				break
			}
			fmt.Fprintf(con.out, "owner %q stays: %s: %s\n", h.Owner, h.Why, h.Text)
		}
		if e.Empty() && c.Wait {
			fmt.Fprintf(con.out, "%s is empty; penstock evacuate %s --off lets decisions use it again\n", c.Site, c.Site)
		}
	}
	if err == nil && stuck {
		err = fmt.Errorf("%s: %d remaining: %w", c.Site, e.Remaining, errEvacuation)
	}
	return err
}
