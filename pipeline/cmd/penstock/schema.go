package main

import (
	"encoding/json"
	"fmt"

	"penstock/schemas/jsonschema"
)

type schemaCmd struct {
	Name string `arg:"" optional:"" help:"Which one; without a name they are listed."`
}

// Run prints a JSON Schema, or the names of all.
func (c *schemaCmd) Run(con *console) error {
	if c.Name == "" && con.json {
		type schema struct {
			Name string `json:"name"`
			ID   string `json:"id"`
		}
		all := []schema{}
		for _, n := range jsonschema.Names() {
			all = append(all, schema{n, jsonschema.ID(n)})
		}
		return json.NewEncoder(con.out).Encode(all)
	}
	if c.Name == "" {
		for _, n := range jsonschema.Names() {
			fmt.Fprintf(con.out, "%s\t%s\n", n, jsonschema.ID(n))
		}
		return nil
	}
	b, err := jsonschema.Get(c.Name)
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	_, err = con.out.Write(b)
	return err
}
