package telemetry

import (
	"runtime"
	"runtime/debug"
)

// Build says what is running.
type Build struct {
	Version  string `json:"version"`  // of the module, "(devel)" if built from a checkout
	Revision string `json:"revision"` // of the checkout, with "+dirty" if it had changes, "" if unknown
	Go       string `json:"go"`
	Arrow    string `json:"arrow"` // versions of what the formats hang on
	NATS     string `json:"nats_server"`
}

// ReadBuild returns what the linker wrote into the running program.
func ReadBuild() Build {
	b := Build{Version: "(devel)", Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	dirty := ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			b.Revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+dirty"
		}
	}
	if b.Revision != "" {
		b.Revision += dirty
	}
	for _, d := range info.Deps {
		switch d.Path {
		case "github.com/apache/arrow/go/v15":
			b.Arrow = d.Version
		case "github.com/nats-io/nats-server/v2":
			b.NATS = d.Version
		}
	}
	return b
}
