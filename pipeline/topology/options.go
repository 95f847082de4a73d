package topology

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"penstock/infra/bus"
	"penstock/pipeline/config"
	"penstock/producers/replay"
	"penstock/producers/replay/pace"
	"penstock/producers/replay/route"
)

// ErrOptions is returned for options that nothing can run with. Nothing was
// done.
var ErrOptions = errors.New("invalid options")

// Replay says what a replay does; see DESIGN §5 for each option.
type Replay struct {
	Files  []string
	Config *config.Config
	// Out is where report and matrices go, State where bus, stores, journal and
	// cursor are. Defaults to Out/state.
	Out, State string
	Friends    string
	Locations  string // CSV of where owners' data is before the first row
	GeoIP      string
	OwnerDepth int
	Format     string // of all files, see recording.Named; empty: told from each
	Zone       string // of times in access logs that name none; empty: UTC
	Speed      pace.Speed
	// MaxLag fails a paced run that fell behind by more; 0 is no limit.
	MaxLag time.Duration
	// Route is follow or recorded; empty follows unless the recording says which
	// site served.
	Route    string
	Disorder time.Duration
	MaxSkew  time.Duration
	RunID    string
	Until    time.Time
	Strict   bool
	NoWait   bool
	Apply    bool
	Fresh    bool
	// MoverOff leaves the executor out: decisions are recorded and commands
	// wait.
	MoverOff bool
	// Sync of the embedded bus.
	Sync bus.Sync

	Logger   zerolog.Logger
	Progress func(replay.Progress)
	// Note is told what else is worth knowing.
	Note func(text string)
	// Hold, if set, is waited for before the mover starts, for tests of one that
	// was away.
	Hold func(ctx context.Context, client *bus.Client) error
	// Hook, if set, is told of points in the run, for tests that kill it there.
	Hook func(point string)
}

func (r *Replay) complete() error {
	if len(r.Files) == 0 || r.Config == nil || r.Out == "" {
		return fmt.Errorf("recordings, a configuration and a folder are needed: %w", ErrOptions)
	}
	switch r.Route {
	case "", route.Follow.String(), route.Recorded.String():
	default:
		return fmt.Errorf("route %q, expected follow or recorded: %w", r.Route, ErrOptions)
	}
	if r.Note == nil {
		r.Note = func(string) {}
	}
	if r.Hook == nil {
		r.Hook = func(string) {}
	}
	return nil
}
