package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"penstock/pipeline/config"
	"penstock/pipeline/report"
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
	if err == nil {
		err = topology.CheckLatency(cfg)
	}
	var notes []string
	if cfg != nil {
		notes = cfg.Notes()
		if cfg.Privacy.UserKey == "" {
			notes = append(notes, "privacy.user_key is not set: replay needs none, but serve, entry and follow refuse to start")
		}
	}
	if missing, e := config.MissingPrograms(c.File); e == nil { // Else it has faults, which are told.
		for _, f := range missing {
			notes = append(notes, f.String())
		}
	}
	if con.json {
		return errors.Join(err, c.encode(con, cfg, notes, err))
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(con.out, "%s: fine, %d sites\n", c.File, len(cfg.Sites))
	for _, n := range notes {
		fmt.Fprintln(con.out, "note:", n)
	}
	return nil
}

// encode writes what was found for a machine. A file that could not be read has
// its error alone.
func (c *configCheckCmd) encode(con *console, cfg *config.Config, notes []string, err error) error {
	type fault struct {
		Line     int    `json:"line,omitempty"`
		Path     string `json:"path,omitempty"`
		Got      string `json:"got,omitempty"`
		Expected string `json:"expected,omitempty"`
		Text     string `json:"text"`
	}
	out := struct {
		File   string   `json:"file"`
		Fine   bool     `json:"fine"`
		Sites  int      `json:"sites"`
		Notes  []string `json:"notes"`
		Faults []fault  `json:"faults"`
	}{c.File, err == nil, 0, []string{}, []fault{}}
	var faults config.Faults
	switch {
	case errors.As(err, &faults):
		for _, f := range faults {
			out.Faults = append(out.Faults, fault{f.Line, f.Path, f.Got, f.Expected, f.String()})
		}
	case errors.Is(err, report.ErrLatency):
		out.Faults = append(out.Faults, fault{Path: "latency", Text: err.Error()})
	case err != nil:
		return nil //nolint:nilerr // The caller returns it: there is nothing to add.
	}
	if cfg != nil {
		out.Sites, out.Notes = len(cfg.Sites), append(out.Notes, notes...)
	}
	return json.NewEncoder(con.out).Encode(out)
}

type configDefaultCmd struct{}

// Run prints the defaults.
func (c *configDefaultCmd) Run(con *console) error {
	_, err := fmt.Fprint(con.out, config.DefaultYAML())
	return err
}
