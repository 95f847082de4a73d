package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/user"
	"time"

	"penstock/infra/clock"
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
		fmt.Sprintf("%s: mode %s from the next window on", c.Kind, c.Mode))
}

type freezeCmd struct {
	busFlags
	Kind string `arg:"" optional:"" help:"The kind to freeze; all without one." enum:"placement,split,servers,coding,all" default:"all"`
}

// Run freezes a kind, or all.
func (c *freezeCmd) Run(con *console) error {
	return c.set(con, freezeKey(c.Kind), control.Switch{On: true},
		fmt.Sprintf("%s: frozen from the next window on; penstock thaw %s ends it", c.Kind, c.Kind))
}

type thawCmd struct {
	busFlags
	Kind string `arg:"" optional:"" help:"The kind to thaw; without one the freeze of all ends." enum:"placement,split,servers,coding,all" default:"all"`
}

// Run thaws a kind, or ends the freeze of all.
func (c *thawCmd) Run(con *console) error {
	return c.set(con, freezeKey(c.Kind), control.Switch{}, fmt.Sprintf("%s: thawed from the next window on", c.Kind))
}

func freezeKey(kind string) string {
	if kind == "all" {
		return control.FreezeAllKey
	}
	return control.FreezeKey(control.Kind(kind))
}

type rollbackCmd struct {
	busFlags
	Kind string    `arg:"" help:"The kind to roll back." enum:"placement,split,servers,coding"`
	To   time.Time `required:"" help:"Undo what was decided in windows that ended after this time (RFC 3339)."`
}

// Run asks for a rollback, which freezes the kind until a thaw.
func (c *rollbackCmd) Run(con *console) error {
	to := c.To.UTC()
	return c.set(con, control.RollbackKey(control.Kind(c.Kind)), control.Switch{After: &to},
		fmt.Sprintf("%s: decisions of windows that ended after %s are undone at the next window; then it is frozen until penstock thaw %s",
			c.Kind, to.Format(time.RFC3339), c.Kind))
}

// set writes a switch of the operator.
func (f *busFlags) set(con *console, key string, s control.Switch, said string) (err error) {
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
	if con.json {
		return json.NewEncoder(con.out).Encode(map[string]any{"key": key, "revision": rev, "switch": s})
	}
	_, err = fmt.Fprintln(con.out, said)
	return err
}

func operatorName() string {
	if u, err := user.Current(); err == nil {
		host, _ := os.Hostname() // Without a name the user's alone says enough.
		return u.Username + "@" + host
	}
	return "unknown"
}
