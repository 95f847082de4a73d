package main

import (
	"encoding/json"
	"errors"

	"penstock/pipeline/report"
)

type auditCmd struct{ busFlags }

// Run checks the account over the stream; it fails if it does not hold.
func (c *auditCmd) Run(con *console) (err error) {
	b, client, err := c.open(con, "audit")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	a, err := report.NewAudit(con.ctx, client)
	if err != nil {
		return err
	}
	if con.json {
		err = json.NewEncoder(con.out).Encode(a)
	} else {
		err = a.Print(con.out)
	}
	if err == nil && !a.Holds() {
		err = a.Err()
	}
	return err
}
