// Package doctor looks for what would break: before a start, and while things
// run (DESIGN §5).
//
// Each look at one thing gives one [Finding]: it is fine, it deserves a second
// look, it is broken, or it could not be looked at because something before it is
// broken. Findings come in a fixed order and say what was seen, what was expected
// and what would help. Nothing is changed but for one thing: whether a store can be
// written to is found out by making and removing an empty closed copy of an owner
// of this package's own name, which nobody serves; [Options.ReadOnly] leaves that
// out.
//
// # Failures
//
// None: what can't be looked at is a finding. Run returns early only when its
// context ends.
package doctor

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/rs/zerolog"

	"penstock/infra/bus"
	"penstock/infra/clock"
	"penstock/infra/objectstore"
	"penstock/pipeline/config"
)

// Verdict is how a look ended.
type Verdict string

// The verdicts.
const (
	Fine    Verdict = "ok"
	Look    Verdict = "warn"    // works, and deserves a second look
	Broken  Verdict = "fail"    // does not work, or will not
	Unknown Verdict = "unknown" // could not be looked at
)

// Finding is what one look has shown.
type Finding struct {
	Area    string  `json:"area"` // configuration, bus, permissions, clock, disk, stores, capacity, decisions
	What    string  `json:"what"` // the thing looked at
	Verdict Verdict `json:"verdict"`
	Text    string  `json:"text"`           // what was seen
	Hint    string  `json:"hint,omitempty"` // what would help
}

// Report is all findings.
type Report struct {
	Findings []Finding `json:"findings"`
}

// Options say what to look at. What is nil or empty is left out.
type Options struct {
	Config *config.Config
	// Serve: the configuration is to be served, which needs more of it than a
	// replay does.
	Serve bool
	// Bus opens the bus; its error is a finding.
	Bus func(ctx context.Context) (*bus.Bus, error)
	// Stores opens the configured stores.
	Stores func(ctx context.Context, client *bus.Client) (map[string]objectstore.Store, func() error, error)
	// Split makes the policy of split of the configuration; its error is a finding.
	Split func() error
	// Coding makes the policy of coding of the configuration; its error is a finding.
	Coding func() error
	// Servers makes the policy of servers of the configuration, and what turns them on and
	// off; its error is a finding.
	Servers func() error
	// Programs are those of command hooks that can't be run on this machine.
	Programs config.Faults
	// Coders looks at what coders need where they run: files and stores. Nothing is made
	// in those stores.
	Coders bool
	// State is the folder of an embedded bus and of the mover's journal.
	State string
	// ReadOnly makes nothing in the stores.
	ReadOnly bool
	// Timeout bounds each look. Defaults to 10 s.
	Timeout time.Duration
	Clock   clock.Clock
	Logger  zerolog.Logger
}

// examination is a run of all looks.
type examination struct {
	Options
	report Report
	client *bus.Client
}

// Run looks at everything, one after another.
func Run(ctx context.Context, o Options) *Report {
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Second
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	x := &examination{Options: o}
	if o.Config != nil {
		x.configuration()
		x.components()
		x.coders()
		x.dispatchers()
		if x.tablesOnly() {
			x.fine("configuration", "placement", "no site has a store: %s, and no data is moved; headroom, cooldown and capacities are not looked at", x.instead())
		} else {
			x.capacities()
		}
	}
	x.disk()
	if o.Bus != nil {
		b := x.bus(ctx)
		if b != nil {
			defer x.closing("bus", "closing", b.Close)
			x.onBus(ctx, b)
		}
	}
	if o.Stores != nil {
		x.stores(ctx)
	}
	x.coderParts(ctx)
	return &x.report
}

func (x *examination) closing(area, what string, closer func() error) {
	if err := closer(); err != nil {
		x.add(area, what, Look, err.Error(), "")
	}
}

// add notes a finding.
func (x *examination) add(area, what string, v Verdict, text, hint string) {
	x.report.Findings = append(x.report.Findings, Finding{area, what, v, text, hint})
}

func (x *examination) fine(area, what, format string, args ...any) {
	x.add(area, what, Fine, fmt.Sprintf(format, args...), "")
}

// within bounds one look.
func (x *examination) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, x.Timeout)
}

// Count returns how many findings have a verdict.
func (r *Report) Count(v Verdict) int {
	n := 0
	for _, f := range r.Findings {
		if f.Verdict == v {
			n++
		}
	}
	return n
}

// Print writes the findings for people, and what they come to.
func (r *Report) Print(w io.Writer) error {
	for _, f := range r.Findings {
		line := fmt.Sprintf("%-7s %s: %s: %s", f.Verdict, f.Area, f.What, f.Text)
		if f.Hint != "" {
			line += "\n        " + f.Hint
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return fmt.Errorf("print: %w", err)
		}
	}
	_, err := fmt.Fprintf(w, "%d ok, %d to look at, %d broken, %d unknown\n", r.Count(Fine), r.Count(Look), r.Count(Broken), r.Count(Unknown))
	if err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}
