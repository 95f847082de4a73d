package main

import (
	"fmt"

	"penstock/pipeline/config"
	"penstock/pipeline/topology"
)

type configCmd struct {
	Check   configCheckCmd   `cmd:"" help:"Name every fault of a configuration with its line."`
	Default configDefaultCmd `cmd:"" help:"Print the whole configuration with its defaults and comments."`
}

type configCheckCmd struct {
	File string `arg:"" help:"The configuration." type:"existingfile"`
}

// Run checks a file.
func (c *configCheckCmd) Run(con *console) error {
	cfg, err := config.Load(c.File)
	if err != nil {
		return err
	}
	if err := topology.CheckLatency(cfg); err != nil {
		return err
	}
	fmt.Fprintf(con.out, "%s: fine, %d sites\n", c.File, len(cfg.Sites))
	for _, n := range cfg.Notes() {
		fmt.Fprintln(con.out, "note:", n)
	}
	return nil
}

type configDefaultCmd struct{}

// Run prints the defaults.
func (c *configDefaultCmd) Run(con *console) error {
	_, err := fmt.Fprint(con.out, config.DefaultYAML())
	return err
}
