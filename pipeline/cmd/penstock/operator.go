package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strings"
	"time"

	"penstock/consumers/decider"
	"penstock/infra/bus"
	"penstock/infra/clock"
	"penstock/producers/replay"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

type modeCmd struct {
	busFlags
	Kind string `arg:"" help:"placement, split, servers or coding." enum:"placement,split,servers,coding"`
	Mode string `arg:"" help:"observe (decide nothing), advise (publish, apply nothing) or act." enum:"observe,advise,act"`
}

// Run sets the mode of a kind; it counts from the next window on.
func (c *modeCmd) Run(con *console) error {
	return c.set(con, control.ModeKey(control.Kind(c.Kind)), control.Switch{Mode: control.Mode(c.Mode)},
		fmt.Sprintf("%s: mode %s", c.Kind, c.Mode), " from the next window on")
}

type freezeCmd struct {
	busFlags
	Kind string `arg:"" optional:"" help:"The kind to freeze; all without one." enum:"placement,split,servers,coding,all" default:"all"`
}

// Run freezes a kind, or all.
func (c *freezeCmd) Run(con *console) error {
	return c.set(con, freezeKey(c.Kind), control.Switch{On: true},
		c.Kind+": frozen", fmt.Sprintf(" from the next window on; penstock thaw %s ends it", c.Kind))
}

type thawCmd struct {
	busFlags
	Kind string `arg:"" optional:"" help:"The kind to thaw; without one the freeze of all ends." enum:"placement,split,servers,coding,all" default:"all"`
}

// Run thaws a kind, or ends the freeze of all.
func (c *thawCmd) Run(con *console) error {
	return c.set(con, freezeKey(c.Kind), control.Switch{}, c.Kind+": thawed", " from the next window on")
}

func freezeKey(kind string) string {
	if kind == "all" {
		return control.FreezeAllKey
	}
	return control.FreezeKey(control.Kind(kind))
}

type rollbackCmd struct {
	busFlags
	Kind string  `arg:"" help:"The kind to roll back." enum:"placement,split,servers,coding"`
	To   instant `required:"" help:"Undo what was decided in windows that ended after this time (RFC 3339, such as 2026-03-01T10:00:00Z)." placeholder:"TIME"`
}

// Run asks for a rollback, which freezes the kind until a thaw. One after a time
// to come would undo nothing and freeze all the same; one of a replay that has
// ended, or of a kind that has never decided, would never be carried out. All are
// refused.
func (c *rollbackCmd) Run(con *console) error {
	to := c.To.UTC()
	if now := clock.System().Now().UTC(); to.After(now) {
		return fmt.Errorf("%w: --to %s is in the future (it is %s): there is nothing to undo", errUsage, to.Format(time.RFC3339), now.Format(time.RFC3339))
	}
	ended, err := c.ended()
	if err != nil {
		return err
	}
	if ended != "" {
		return fmt.Errorf("%s; rollback works on a running Penstock", ended)
	}
	if err := c.hasDecided(con, control.Kind(c.Kind)); err != nil {
		return err
	}
	return c.set(con, control.RollbackKey(control.Kind(c.Kind)), control.Switch{After: &to},
		fmt.Sprintf("%s: decisions of windows that ended after %s are undone", c.Kind, to.Format(time.RFC3339)),
		fmt.Sprintf(" at the next window; then it is frozen until penstock thaw %s", c.Kind))
}

// hasDecided fails if a kind has no decision on the bus.
func (f *busFlags) hasDecided(con *console, k control.Kind) (err error) {
	b, client, err := f.open(con, "operator")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	_, err = client.Last(con.ctx, subject.CommandsStream, subject.Decisions(string(k)))
	if !errors.Is(err, bus.ErrNoMessage) {
		return err
	}
	runs, why, err := decides(con.ctx, client, k)
	switch {
	case err != nil:
		return err
	case runs:
		return fmt.Errorf("%s has decided nothing yet: there is nothing to undo", k)
	}
	return fmt.Errorf("%s has decided nothing, and %s: there is nothing to undo", k, why)
}

// decides reports whether a decider of the kind runs here, as far as the bus tells;
// if not, why. Placement is decided by every Penstock that serves. Split is where
// the configuration has components, coding where it has coders and servers where it has
// classes of them, which the bus does not know: but their deciders have left a record or, before the first, a snapshot.
func decides(ctx context.Context, client *bus.Client, k control.Kind) (runs bool, why string, err error) {
	if k == control.Placement {
		return true, "", nil
	}
	where, ok := map[control.Kind]string{control.Split: "components", control.Coding: "coders", control.Servers: "servers.classes"}[k]
	if !ok {
		return false, fmt.Sprintf("no decider of %s runs in this version", k), nil
	}
	runs, err = decider.Known(ctx, client, k)
	return runs, fmt.Sprintf("no decider of %s has run on this bus: one does where the configuration has %s", k, where), err
}

// heeded says whom a switch is for if it is of a kind that nobody decides here;
// it is empty of every other.
func heeded(ctx context.Context, client *bus.Client, key string) (string, error) {
	first, kind, _ := strings.Cut(key, ".")
	k := control.Kind(kind)
	if first == "evacuate" || !slices.Contains(control.Kinds, k) {
		return "", nil
	}
	runs, why, err := decides(ctx, client, k)
	if err != nil || runs {
		return "", err
	}
	return why + "; the switch is kept for one that does", nil
}

// ended says that no window will be decided any more on the bus of a finished
// replay; it is empty of any other bus. Of a bus at an address it is not known.
func (f *busFlags) ended() (string, error) {
	if f.NATS != "" {
		return "", nil
	}
	cursor, err := replay.ReadCursor(f.State)
	if err != nil || cursor == nil || !cursor.Finished {
		return "", err
	}
	return fmt.Sprintf("the replay in %s has ended: no window will be decided there any more", f.State), nil
}

// set writes a switch of the operator and says so, and from when it counts.
func (f *busFlags) set(con *console, key string, s control.Switch, said, from string) (err error) {
	ended, err := f.ended()
	if err != nil {
		return err
	}
	if ended != "" {
		from = "; but " + ended
	}
	b, client, err := f.open(con, "operator")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	s.Version, s.At, s.By = 1, clock.System().Now().UTC(), operatorName()
	body, err := control.Encode(s)
	if err != nil {
		return err
	}
	kv, err := client.KV(con.ctx, subject.OperatorKV)
	if err != nil {
		return err
	}
	rev, err := kv.Put(con.ctx, key, body)
	if err != nil {
		return fmt.Errorf("switch %s: %w", key, err)
	}
	note, err := heeded(con.ctx, client, key)
	if err != nil {
		return err
	}
	if con.json {
		done := map[string]any{"key": key, "revision": rev, "switch": s}
		if why := cmp.Or(note, ended); why != "" {
			done["note"] = why
		}
		return json.NewEncoder(con.out).Encode(done)
	}
	if note != "" {
		fmt.Fprintln(con.err, "note:", note)
	}
	_, err = fmt.Fprintln(con.out, said+from)
	return err
}

func operatorName() string {
	if u, err := user.Current(); err == nil {
		host, _ := os.Hostname() // Without a name the user's alone says enough.
		return u.Username + "@" + host
	}
	return "unknown"
}
