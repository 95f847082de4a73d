package coding

import (
	"fmt"
	"strings"
	"time"

	"penstock/pipeline/demo/load"
	"penstock/schemas/control"
)

// scene is what there is to be seen at one moment.
type scene struct {
	since string // the beginning
	phase string
	arms  []armScene
	table []string // what the decider sent last, in words
}

// armScene is a policy in it.
type armScene struct {
	policy    string
	n, k      int // what a read would get now
	backlog   int
	smoothed  float64
	inUse     int
	perSecond float64 // reads answered in the last seconds
	mean, p99 time.Duration
	refused   int
	failed    int
	perRead   float64 // requests to the store for a read; below 0: nothing was read
}

// recent is the time that delays of a scene are about.
const recent = 5 * time.Second

const barWidth = 16

// picture draws a scene.
func (c *scene) picture() []string {
	out := []string{
		"", fmt.Sprintf("  %s   %s", c.since, c.phase), "",
		fmt.Sprintf("  %-7s %-7s %-*s %7s %8s %9s %9s %8s %8s %7s %10s", "coder", "code", barWidth, "connections", "backlog", "smoothed", "mean", "p99", "reads/s", "refused", "asked", "$/M reads"),
	}
	for _, a := range c.arms {
		out = append(out, fmt.Sprintf("  %-7s %-7s %s %7d %8.3f %6.0f ms %6.0f ms %8.1f %8d %7s %10s",
			a.policy, fmt.Sprintf("(%d,%d)", a.n, a.k), bar(a.inUse), a.backlog, a.smoothed, ms(a.mean), ms(a.p99), a.perSecond, a.refused, number(a.perRead, 2), number(a.perRead*price, 2)))
	}
	out = append(out, "")
	for _, line := range c.table {
		out = append(out, "  "+line)
	}
	out = append(out, "")
	for i := range out {
		out[i] = strings.TrimRight(out[i], " ")
	}
	return out
}

// number is one that may not be known.
func number(v float64, digits int) string {
	if v < 0 {
		return "–"
	}
	return fmt.Sprintf("%.*f", digits, v)
}

func bar(inUse int) string {
	full := min(barWidth, max(0, inUse*barWidth/connections))
	return strings.Repeat("█", full) + strings.Repeat("·", barWidth-full)
}

// line is the scene in short.
func (c *scene) line() string {
	out := []string{c.since + "  " + c.phase}
	for _, a := range c.arms {
		text := fmt.Sprintf("%s (%d,%d) backlog %d, %.0f ms, p99 %.0f ms, %.1f reads/s", a.policy, a.n, a.k, a.backlog, ms(a.mean), ms(a.p99), a.perSecond)
		if a.refused > 0 {
			text += fmt.Sprintf(", %d refused", a.refused)
		}
		if a.failed > 0 {
			text += fmt.Sprintf(", %d failed", a.failed)
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

// scene looks at everything.
func (s *show) scene() *scene {
	now := s.clock.Now()
	c := &scene{since: since(now.Sub(s.start)), phase: "begins"}
	if n := s.now.Load(); n > 0 {
		p := &s.phases[n-1]
		c.phase = fmt.Sprintf("%s: %.1f requests a second, %d %% of what (1,1) carries", p.Name, float64(p.Percent)/100*s.capacity(1, 1), p.Percent)
	}
	for i, a := range s.world.arms {
		c.arms = append(c.arms, s.armScene(now, i, a))
	}
	table, n := s.world.seer.table()
	c.table = tableText(table, n)
	return c
}

func (s *show) armScene(now time.Time, number int, a *arm) armScene {
	x := armScene{policy: a.text, perRead: -1}
	reads := a.people.seen.Recent(now.Add(-recent), func(p *load.Sample[shot]) bool { return !p.Of.write })
	x.mean, x.p99 = mean(reads), reads.Quantile(0.99)
	x.perSecond = float64(len(reads)) / recent.Seconds()
	x.refused = len(a.people.refusals.Recent(now.Add(-recent), func(*load.Sample[shot]) bool { return true }))
	x.failed, _, _ = a.people.failures()
	all := s.sights(number)
	if len(all) == 0 {
		return x
	}
	last := &all[len(all)-1]
	x.n, x.k, x.backlog, x.smoothed = last.status.Read.N, last.status.Read.K, last.status.Backlog, last.status.Smoothed
	x.inUse = last.status.Connections
	before := all[max(0, len(all)-1-int(recent/(500*time.Millisecond)))]
	if len(reads) > 0 {
		x.perRead = float64(last.counts.Reads-before.counts.Reads) / float64(len(reads))
	}
	return x
}

func mean(l load.Latencies) time.Duration {
	if len(l) == 0 {
		return 0
	}
	var sum time.Duration
	for _, d := range l {
		sum += d
	}
	return sum / time.Duration(len(l))
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// tableText is a table of codes in words.
func tableText(c *control.Command, commands int) []string {
	if c == nil || c.Coding == nil {
		return []string{"tofec's table: the default of its configuration; nothing was decided yet"}
	}
	t := c.Coding
	return []string{
		fmt.Sprintf("tofec's table, epoch %d, the %d. command: %s", c.Epoch, commands, c.Reason.Code),
		"reads: more than k chunks needed while fewer wait than  " + thresholds(t.Read.K),
		fmt.Sprintf("learned: %.1f + %.0f·MB ms, exponentially %.1f + %.0f·MB ms", t.Model.Read.Delta, t.Model.Read.DeltaPerMB, t.Model.Read.Psi, t.Model.Read.PsiPerMB),
	}
}

// thresholds are those of k in words.
func thresholds(h []float64) string {
	out := make([]string, len(h))
	for i, v := range h {
		out[i] = fmt.Sprintf("%d: %.3g", i+1, v)
	}
	return strings.Join(out, "  ")
}

// tell says what each command changes.
func (s *show) tell(c *control.Command) {
	at := since(s.clock.Now().Sub(s.start))
	for _, line := range tableText(c, int(c.Epoch)) {
		s.Screen.Say("%s  %s", at, line)
	}
}
