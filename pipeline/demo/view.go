package demo

import (
	"context"
	"fmt"
	"strings"
	"time"

	"penstock/pipeline/demo/load"
	"penstock/pipeline/demo/screen"
)

// scene is what there is to be seen at one moment.
type scene struct {
	since    string // the beginning
	crowd    string // where it is
	sites    []siteScene
	moves    int
	decision string // the last one
	reasons  string // for it
	answered int
	hop      float64 // part of the answers of the last seconds that took a hop
	written  int
	failed   int
}

// siteScene is one site in it.
type siteScene struct {
	name   string
	owners int
	people int
	rate   float64 // requests a second that it serves
	p50    time.Duration
	p99    time.Duration // of those that people there make
}

// recent is the time that figures of a scene are about.
const recent = 3 * time.Second

// barWidth is that of the bars, in columns.
const barWidth = 12

// picture draws a scene.
func (c *scene) picture() []string {
	most := 1
	for _, s := range c.sites {
		most = max(most, s.owners, s.people)
	}
	out := []string{
		"",
		fmt.Sprintf("  %s   the crowd is at %s", c.since, c.crowd),
		"",
		fmt.Sprintf("  %-12s %-*s  %-*s %8s %8s %8s", "site", barWidth+5, "people there", barWidth+5, "notebooks", "requests", "p50", "p99"),
	}
	for _, s := range c.sites {
		out = append(out, fmt.Sprintf("  %-12s %s %4d  %s %4d %6.0f/s %5.0f ms %5.0f ms", s.name, bar(s.people, most), s.people, bar(s.owners, most), s.owners, s.rate, ms(s.p50), ms(s.p99)))
	}
	return append(out,
		"",
		fmt.Sprintf("  %d moves, %d answers (lately %.0f %% with a hop), %d writes kept, %d failed", c.moves, c.answered, 100*c.hop, c.written, c.failed),
		"  decided: "+c.decision,
		"  because: "+c.reasons,
		"",
	)
}

// line is the scene in short.
func (c *scene) line() string {
	var at []string
	for _, s := range c.sites {
		at = append(at, fmt.Sprintf("%s %d notebooks, p50 %.0f ms, p99 %.0f ms", s.name, s.owners, ms(s.p50), ms(s.p99)))
	}
	return fmt.Sprintf("%s  crowd at %s; %s; %d moves, %d answers, %d failed", c.since, c.crowd, strings.Join(at, "; "), c.moves, c.answered, c.failed)
}

func bar(n, most int) string {
	full := (n*barWidth + most/2) / most
	return strings.Repeat("█", full) + strings.Repeat("·", barWidth-full)
}

// scene looks at everything.
func (s *show) scene() *scene {
	now := s.clock.Now()
	crowd := s.users.where.crowd()
	owners := s.seer.at()
	c := &scene{since: s.since(now), crowd: s.world.Regions[crowd].Name}
	c.decision, c.reasons = s.seer.decision()
	since := now.Add(-recent)
	all := s.users.seen.Recent(since, func(*load.Sample[kind]) bool { return true })
	hops := s.users.seen.Recent(since, func(a *load.Sample[kind]) bool { return a.Of.hops > 0 })
	c.hop = float64(len(hops)) / float64(max(len(all), 1))
	people := make([]int, len(s.world.Regions))
	for i := range s.world.People {
		people[s.world.Where(&s.world.People[i], crowd)]++
	}
	for i, r := range s.world.Regions {
		served := s.users.seen.Recent(since, func(a *load.Sample[kind]) bool { return a.Of.served == Site(i) })
		asked := s.users.seen.Recent(since, func(a *load.Sample[kind]) bool { return a.Of.at == Site(i) })
		c.sites = append(c.sites, siteScene{
			name: r.Name, owners: owners[r.Name], people: people[i], rate: float64(len(served)) / recent.Seconds(),
			p50: asked.Quantile(0.5), p99: asked.Quantile(0.99),
		})
	}
	c.moves, _, _ = s.seer.moved()
	c.answered, c.written, c.failed = s.users.seen.Len(), s.users.books.Total(), s.users.faults.of(failed)
	return c
}

// watch shows scenes until the context ends.
func (s *show) watch(ctx context.Context) {
	t := s.clock.NewTicker(250 * time.Millisecond)
	defer t.Stop()
	s.Screen.Watch(ctx, t, func() screen.Frame {
		c := s.scene()
		return screen.Frame{Picture: c.picture(), Line: c.line()}
	})
}
