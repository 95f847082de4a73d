package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"penstock/consumers/panes"
	"penstock/pipeline/report"
	"penstock/schemas/control"
	"penstock/schemas/subject"
	"penstock/schemas/window"
)

// decisions looks at the last decisions and at the operator's switches.
func (x *examination) decisions(ctx context.Context) {
	short, cancel := x.within(ctx)
	defer cancel()
	s, err := report.NewStatus(short, x.client)
	if err != nil {
		x.add("decisions", "status", Unknown, err.Error(), "")
		return
	}
	for _, f := range s.Faults {
		x.add("decisions", "operator", Broken, f, "what the operator wanted is not known: the kind is frozen; set the switch again")
	}
	k := &s.Kinds[slices.IndexFunc(s.Kinds, func(k report.KindStatus) bool { return k.Kind == control.Placement })]
	switch {
	case k.Decided:
		x.lastDecision(k, "moves nothing")
	case x.tablesOnly():
		x.fine("decisions", "placement", "nothing was decided yet, and nothing need be: no site has a store")
	default:
		x.add("decisions", "placement", Look, "nothing was decided yet", "a window is decided once its traffic is over")
	}
	x.split(s)
	x.coding(s)
	x.servers(s)
	if !slices.ContainsFunc(s.Kinds, func(k report.KindStatus) bool { return k.Decided }) {
		return
	}
	for _, p := range s.Progress {
		if p.Behind > 10_000 {
			x.add("decisions", "aggregator of "+p.Group, Look, fmt.Sprintf("%d messages behind", p.Behind), "is it running, and fast enough?")
		}
	}
}

// lastDecision looks at the mode of a kind's last decision.
func (x *examination) lastDecision(k *report.KindStatus, frozen string) {
	kind := string(k.Kind)
	switch {
	case k.Frozen:
		x.add("decisions", kind, Look, "frozen: it "+frozen, "penstock thaw "+kind+" lets it go on")
	case k.Mode == control.Act && k.Decision.Mode != control.Act:
		x.add("decisions", kind, Broken, fmt.Sprintf("the operator set act, it decided in mode %s", k.Decision.Mode), "its record says why: penstock status")
	default:
		x.fine("decisions", kind, "window to %s decided in mode %s", k.Decision.Window.End.UTC().Format(time.RFC3339), k.Decision.Mode)
	}
}

// load is the busiest window of each site and of all together.
type load struct {
	site    map[string]int64 // most in a window
	total   int64
	owner   string // with the most traffic in a window
	most    int64
	windows int
}

// traffic compares capacities with the windows that are on the bus.
func (x *examination) traffic(ctx context.Context) {
	if x.Config == nil || x.tablesOnly() {
		return
	}
	short, cancel := x.within(ctx)
	defer cancel()
	l := load{site: map[string]int64{}}
	_, err := panes.Each(short, x.client, panes.Options{Group: window.Owners, Width: x.Config.Placement.Window.Std()}, panes.Visitor{
		Window: func(w *panes.Window) error { l.add(w.Tables[window.Traffic.Name]); return nil },
	})
	switch {
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil && l.windows > 0:
		x.add("capacity", "traffic", Look, fmt.Sprintf("only %d windows could be read in time", l.windows), "")
	case err != nil:
		x.add("capacity", "traffic", Unknown, err.Error(), "")
		return
	}
	if l.windows == 0 {
		x.add("capacity", "traffic", Unknown, "no closed window in "+subject.WindowsStream, "replay a recording, or wait for the first window")
		return
	}
	x.compare(&l)
}

// add takes a window's traffic in.
func (l *load) add(t *window.Table) {
	if t == nil {
		return
	}
	l.windows++
	owners, sites, volume := t.Key("owner"), t.Key("site"), t.Column("bytes")
	bySite, byOwner, total := make([]int64, len(sites.Values)), make([]int64, len(owners.Values)), int64(0)
	for i, n := range volume {
		total += n
		if c := sites.Codes[i]; c >= 0 {
			bySite[c] += n
		}
		if c := owners.Codes[i]; c >= 0 {
			byOwner[c] += n
		}
	}
	for c, n := range bySite {
		l.site[sites.Values[c]] = max(l.site[sites.Values[c]], n)
	}
	for c, n := range byOwner {
		if n > l.most {
			l.owner, l.most = owners.Values[c], n
		}
	}
	l.total = max(l.total, total)
}

func (x *examination) compare(l *load) {
	width := x.Config.Placement.Window.Std()
	var sum, largest int64
	for _, s := range x.Config.Sites {
		room := int64(float64(s.Capacity.In(width)) * (1 - x.Config.Placement.Headroom))
		sum, largest = sum+room, max(largest, room)
		if n := l.site[s.Name]; n > room {
			x.add("capacity", "site "+s.Name, Look, fmt.Sprintf("%s in its busiest window, and takes %s", report.Bytes(n), report.Bytes(room)), "owners are moved away from it when that comes again")
		}
		delete(l.site, s.Name)
	}
	names := make([]string, 0, len(l.site))
	for name := range l.site {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if name != "" {
			x.add("capacity", "site "+name, Look, "serves requests, and the configuration does not name it", "its traffic is counted nowhere")
		}
	}
	text := fmt.Sprintf("%s in the busiest of %d windows, %s can be taken", report.Bytes(l.total), l.windows, report.Bytes(sum))
	switch {
	case l.total > sum:
		x.add("capacity", "all sites", Broken, text, "no placement can help: add capacity, or lower the headroom")
	case float64(l.total) > 0.95*float64(sum):
		x.add("capacity", "all sites", Look, text, "little room is left to place owners in")
	default:
		x.fine("capacity", "all sites", "%s", text)
	}
	if l.most > largest {
		x.add("capacity", fmt.Sprintf("owner %.80q", l.owner), Broken,
			fmt.Sprintf("%s in a window: more than any site takes", report.Bytes(l.most)), "it stays where it is, whatever is decided")
	}
}
