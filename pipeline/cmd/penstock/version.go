package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"penstock/schemas/event"
	"penstock/schemas/window"
)

type versionCmd struct{}

// Run prints what was built from what, and which schemas it speaks.
func (c *versionCmd) Run(con *console) error {
	v := map[string]string{
		"version": "devel", "vcs.revision": "unknown", "go": runtime.Version(), "request": event.RequestSchema,
		"gauge": event.GaugeSchema, "panes": window.PanesSchema, "commit": window.CommitSchema,
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Value != "" && (s.Key == "vcs.revision" || s.Key == "vcs.modified" || s.Key == "vcs.time") {
				v[s.Key] = s.Value
			}
		}
		if info.Main.Version != "" && info.Main.Version != "(devel)" {
			v["version"] = info.Main.Version
		}
	}
	if con.json {
		return json.NewEncoder(con.out).Encode(v)
	}
	_, err := fmt.Fprintf(con.out, "penstock %s (%s, revision %s)\nspeaks %s, %s, %s, %s\n",
		v["version"], v["go"], v["vcs.revision"], v["request"], v["gauge"], v["panes"], v["commit"])
	return err
}
