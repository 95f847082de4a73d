package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"penstock/pipeline/topology"
	"penstock/schemas/control"
)

type explainCmd struct {
	busFlags
	Words []string `arg:"" name:"owner" help:"Whose data; a kind may stand before it: explain placement OWNER."`
}

// Run explains an owner.
func (c *explainCmd) Run(con *console) (err error) {
	owner := c.Words[len(c.Words)-1]
	if len(c.Words) > 2 || len(c.Words) == 2 && c.Words[0] != string(control.Placement) {
		return fmt.Errorf("%w: explain [placement] OWNER; this version decides placement only", errUsage)
	}
	b, client, err := c.open(con, "explain")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	e, err := topology.Explain(con.ctx, client, owner, con.logger())
	if err != nil {
		return err
	}
	if con.json {
		enc := json.NewEncoder(con.out)
		enc.SetEscapeHTML(false)
		return enc.Encode(e)
	}
	return printExplained(con.out, e)
}
