package split

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"penstock/pipeline/demo/load"
	"penstock/pipeline/demo/screen"
	"penstock/pipeline/demo/services"
	"penstock/schemas/control"
)

// scene is what there is to be seen at one moment.
type scene struct {
	since  string // the beginning
	fault  string // what is slow now; empty: nothing
	cells  []cell // by site and component, of the first policy
	worlds []worldScene
	why    string // reasons of the first policy's last decision
}

// cell is a component at a site.
type cell struct {
	site, component string
	// stays is the share of the calls that its site makes to it which stay there, of
	// all its callers together.
	stays float64
	// service is its mean time in the last window, ms; NaN if it had no call.
	service float64
	slow    bool
}

// worldScene is a policy in it.
type worldScene struct {
	policy string
	delays []delay // by site
	failed int
}

// delay is how long answers of the last seconds took.
type delay struct {
	site     string
	p50, p90 time.Duration
}

// recent is the time that delays of a scene are about.
const recent = 5 * time.Second

// barWidth is that of the bars, in columns.
const barWidth = 10

// picture draws a scene.
func (c *scene) picture() []string {
	out := []string{"", fmt.Sprintf("  %s   %s", c.since, cmp.Or(c.fault, "nothing is slow")), ""}
	if len(c.worlds) > 0 {
		out = append(out, fmt.Sprintf("  %-24s %-*s stays  takes", c.worlds[0].policy+": at, component", barWidth, "calls"))
	}
	for i, x := range c.cells {
		site := x.site
		if i > 0 && c.cells[i-1].site == site {
			site = ""
		}
		mark := ""
		if x.slow {
			mark = "  ◀ slow"
		}
		out = append(out, fmt.Sprintf("  %-13s %-10s %s %4.0f %%  %s%s", site, x.component, bar(x.stays), 100*x.stays, service(x.service), mark))
	}
	out = append(out, "", fmt.Sprintf("  %-20s %s", "answers, last 5 s", "p50 and p90 of requests that enter at"))
	for _, w := range c.worlds {
		out = append(out, fmt.Sprintf("  %-20s %s", w.policy, w.text(4, "   ")))
	}
	out = append(out, "", "  decided: "+c.why, "")
	for i := range out {
		out[i] = strings.TrimRight(out[i], " ")
	}
	return out
}

// text is how long answers took, each number in a column of its width.
func (w *worldScene) text(width int, between string) string {
	var out []string
	for _, d := range w.delays {
		out = append(out, fmt.Sprintf("%s %*.0f %*.0f ms", d.site, width, ms(d.p50), width, ms(d.p90)))
	}
	if w.failed > 0 {
		out = append(out, fmt.Sprintf("%d failed", w.failed))
	}
	return strings.Join(out, between)
}

// line is the scene in short.
func (c *scene) line() string {
	out := []string{c.since + "  " + cmp.Or(c.fault, "nothing is slow")}
	for _, x := range c.cells {
		if x.stays < 0.995 {
			out = append(out, fmt.Sprintf("%.0f %% of calls to %s stay at %s", 100*x.stays, x.component, x.site))
		}
	}
	for _, w := range c.worlds {
		out = append(out, w.policy+" p50, p90 "+w.text(0, ", "))
	}
	return strings.Join(out, "; ")
}

func bar(part float64) string {
	full := min(barWidth, max(0, int(math.Round(part*barWidth))))
	return strings.Repeat("█", full) + strings.Repeat("·", barWidth-full)
}

func service(ms float64) string {
	if math.IsNaN(ms) {
		return "     –   "
	}
	return fmt.Sprintf("%6.1f ms", ms)
}

// scene looks at everything.
func (s *show) scene() *scene {
	now := s.clock.Now()
	c := &scene{since: s.since(now), why: "nothing yet"}
	if n := s.during.Load(); n > 0 {
		c.fault = fmt.Sprintf("fault %d of %d: %s at %s", n, len(s.plan.Faults), s.Component, s.Site)
	}
	ours := s.worlds[0].seer
	last := ours.latest()
	for _, p := range s.sites {
		for _, k := range services.Components {
			x := cell{site: p.Name, component: k.Name, stays: ours.stays(k.Name, p.Name), service: math.NaN(), slow: c.fault != "" && k.Name == s.Component && p.Name == s.Site}
			if last != nil {
				if v, ok := last.replica(k.Name, p.Name); ok {
					x.service = v
				}
			}
			c.cells = append(c.cells, x)
		}
	}
	for _, w := range s.worlds {
		x := worldScene{policy: w.policy}
		x.failed, _ = w.people.failures()
		for i, p := range s.sites {
			l := w.people.seen.Recent(now.Add(-recent), func(a *load.Sample[shot]) bool { return a.Of.site == i })
			x.delays = append(x.delays, delay{p.Name, l.Quantile(0.5), l.Quantile(0.9)})
		}
		c.worlds = append(c.worlds, x)
	}
	if d := ours.decision(); d != nil {
		c.why = fmt.Sprintf("window to %s UTC: %s", d.Window.End.UTC().Format("15:04:05"), reasons(d.Reasons))
	}
	return c
}

// stays is the least share, over its callers, of a site's calls to a component that
// are to stay there.
func (o *observer) stays(component, site string) float64 {
	callers := services.Callers(component)
	if len(callers) == 0 {
		callers = []string{control.Outside}
	}
	out := 1.0
	for _, from := range callers {
		if share, ok := o.now(link{from, site, component}, site); ok {
			out = min(out, share)
		}
	}
	return out
}

// decision is the last one, nil before the first.
func (o *observer) decision() *control.Decision {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.last
}

// reasons are a decision's, in words.
func reasons(list []control.Reason) string {
	by := map[string]int64{}
	for _, r := range list {
		by[r.Code] += max(r.Count, 1)
	}
	var out []string
	for code, n := range by {
		out = append(out, fmt.Sprintf("%s %d", code, n))
	}
	slices.Sort(out)
	if len(out) == 0 {
		return "no reasons"
	}
	return strings.Join(out, ", ")
}

// tell says what each command of a world changes.
func (s *show) tell(w *world) func(*order, *observer) {
	return func(x *order, o *observer) {
		for _, line := range changes(x, names(), o.now) {
			s.Screen.Say("%s  %s: %s", s.since(s.clock.Now()), w.policy, line)
		}
	}
}

// changes are the shares that a command changes, in words; now says what was
// commanded before.
func changes(x *order, sites []string, now func(link, string) (float64, bool)) (out []string) {
	for l, row := range x.rows {
		var moves []string
		for _, site := range sites {
			was, known := now(l, site)
			if !known {
				was = 0
				if site == l.site {
					was = 1
				}
			}
			if is := row[site]; is != was {
				moves = append(moves, fmt.Sprintf("%s %.2f → %.2f", site, was, is))
			}
		}
		if len(moves) > 0 {
			out = append(out, fmt.Sprintf("%s: %s (%s)", l, strings.Join(moves, ", "), because(x.reason)))
		}
	}
	slices.Sort(out)
	return out
}

// because is a command's reason in words, with what calls were found to take at the
// sites that lose and win most.
func because(r control.Reason) string {
	text := r.Code + ": " + r.Text
	for _, side := range []string{"from", "into"} {
		site, named := r.Evidence[side].(string)
		us, known := r.Evidence[side+"_us"].(float64)
		if named && known {
			text += fmt.Sprintf(", %s %.0f ms", site, us/1000)
		}
	}
	return text
}

// watch shows scenes until the context ends.
func (s *show) watch(ctx context.Context) {
	t := s.clock.NewTicker(500 * time.Millisecond)
	defer t.Stop()
	s.Screen.Watch(ctx, t, func() screen.Frame {
		c := s.scene()
		return screen.Frame{Picture: c.picture(), Line: c.line()}
	})
}
