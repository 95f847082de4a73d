package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"penstock/infra/bus"
	"penstock/pipeline/topology"
	"penstock/schemas/control"
)

type explainCmd struct {
	busFlags
	Words []string `arg:"" name:"what" help:"OWNER, or placement OWNER: why its data is where it is. split SCOPE[@SITE]: why the calls of a component (entry: from outside) are shared out as they are. coding CODER: why its requests get the codes that they do. servers SITE: why its servers are on or off."`
}

// Run explains an owner's place, how the calls of a component are shared out, which codes
// a coder's requests get, or which servers of a site are on.
func (c *explainCmd) Run(con *console) (err error) {
	kind, what := control.Placement, c.Words[len(c.Words)-1]
	if alone := control.Kind(what); len(c.Words) == 1 && slices.Contains(control.Kinds, alone) {
		return fmt.Errorf("%w: explain %s of what? Expected explain split SCOPE[@SITE], explain coding CODER, explain servers SITE, or explain placement OWNER, also of an owner of that name", errUsage, alone)
	}
	if len(c.Words) == 2 {
		kind = control.Kind(c.Words[0])
	}
	explain, ok := map[control.Kind]func(context.Context, *bus.Client, string, *console) (any, func(io.Writer) error, error){
		control.Placement: explainPlacement, control.Split: explainSplit, control.Coding: explainCoding, control.Servers: explainServers,
	}[kind]
	if len(c.Words) > 2 || !ok {
		return fmt.Errorf("%w: explain [placement] OWNER, explain split SCOPE[@SITE], explain coding CODER, or explain servers SITE; there is no other kind", errUsage)
	}
	b, client, err := c.open(con, "explain")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	e, tell, err := explain(con.ctx, client, what, con)
	if err != nil {
		return err
	}
	if con.json {
		enc := json.NewEncoder(con.out)
		enc.SetEscapeHTML(false)
		return enc.Encode(e)
	}
	return tell(con.out)
}

func explainPlacement(ctx context.Context, client *bus.Client, owner string, con *console) (any, func(io.Writer) error, error) {
	e, err := topology.Explain(ctx, client, owner, con.logger())
	return e, func(w io.Writer) error { return printExplained(w, e) }, err
}

func explainSplit(ctx context.Context, client *bus.Client, what string, con *console) (any, func(io.Writer) error, error) {
	e, err := topology.ExplainSplit(ctx, client, what, con.logger())
	if errors.Is(err, topology.ErrUnknownScope) {
		err = fmt.Errorf("%w: %w", errUsage, err)
	}
	return e, func(w io.Writer) error { return printExplainedSplit(w, e) }, err
}

func explainCoding(ctx context.Context, client *bus.Client, what string, con *console) (any, func(io.Writer) error, error) {
	e, err := topology.ExplainCoding(ctx, client, what, con.logger())
	if errors.Is(err, topology.ErrUnknownScope) {
		err = fmt.Errorf("%w: %w", errUsage, err)
	}
	return e, func(w io.Writer) error { return printExplainedCoding(w, e) }, err
}

func explainServers(ctx context.Context, client *bus.Client, what string, con *console) (any, func(io.Writer) error, error) {
	e, err := topology.ExplainServers(ctx, client, what, con.logger())
	if errors.Is(err, topology.ErrUnknownScope) {
		err = fmt.Errorf("%w: %w", errUsage, err)
	}
	return e, func(w io.Writer) error { return printExplainedServers(w, e) }, err
}
