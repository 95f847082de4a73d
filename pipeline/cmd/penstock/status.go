package main

import (
	"encoding/json"
	"errors"

	"penstock/pipeline/report"
)

type statusCmd struct{ busFlags }

// Run prints what is in force.
func (c *statusCmd) Run(con *console) (err error) {
	b, client, err := c.open(con, "status")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	s, err := report.NewStatus(con.ctx, client)
	if err != nil {
		return err
	}
	if con.json {
		return json.NewEncoder(con.out).Encode(s)
	}
	return s.Print(con.out)
}
