package experiment

import (
	"context"
	"fmt"
	"math"

	"penstock/consumers/decider/placement"
	"penstock/infra/examples"
	"penstock/pipeline/experiment/sheet"
	"penstock/pipeline/experiment/side"
	"penstock/pipeline/report"
	"penstock/pipeline/whatif"
	"penstock/producers/workload"
)

// clouds is the run on measured round trips and prices.
type clouds struct {
	measured *measured
	params   Clouds
	chosen   []int // regions that are sites
}

// World is what the run on measured round trips came to.
type World struct {
	Taken  taken   `json:"taken"`
	SelfMS float64 `json:"rtt_inside_a_region_ms"`
	// Share and Least are Clouds' own.
	Share float64  `json:"capacity_of_busiest_hour"`
	Least float64  `json:"capacity_of_mean_busiest_hour"`
	Sites []SiteOf `json:"sites"`
	Runs  []Run    `json:"runs"`
}

// SiteOf is a region that serves.
type SiteOf struct {
	Name string `json:"name"`
	// Capacity in bytes an hour, of the first seed; Egress in US dollars a GB: the
	// mean to the other sites.
	Capacity int64   `json:"capacity"`
	Egress   float64 `json:"egress_usd_per_gb"`
}

// loadClouds reads the tables and finds the regions. The error wraps ErrData.
func loadClouds(dir string, p Clouds) (*clouds, error) {
	m, err := loadMeasured(dir)
	if err != nil {
		return nil, err
	}
	c := &clouds{measured: m, params: p}
	for _, name := range p.Regions {
		i, ok := m.index[name]
		if !ok {
			return nil, fmt.Errorf("%w: no region %q with round trips and coordinates", ErrData, name)
		}
		c.chosen = append(c.chosen, i)
	}
	for _, from := range c.chosen {
		for r := range m.regions {
			if math.IsNaN(m.rtt[r][from]) {
				return nil, fmt.Errorf("%w: no round trip from %s to %s", ErrData, m.regions[r].name, m.regions[from].name)
			}
		}
		for _, to := range c.chosen {
			if from != to && math.IsNaN(m.usd[from][to]) {
				return nil, fmt.Errorf("%w: no price from %s to %s", ErrData, m.regions[from].name, m.regions[to].name)
			}
		}
	}
	return c, nil
}

// run plays a day of users around the world for each seed.
func (c *clouds) run(ctx context.Context, o *Options, progress func()) (*World, error) {
	base, err := workload.Decode(examples.WorldDay, "world-day.yaml")
	if err != nil {
		return nil, err
	}
	// With many sites each window takes its time: a few days show what there is.
	days := min(o.Seeds, variedSeeds)
	seeds := make([][]Run, days)
	first := make([]placement.Site, 0)
	err = side.Run(ctx, o.Workers, days, func(n int) error {
		params := base
		params.Seed = o.Params.FirstSeed + uint64(n)
		runs, sites, err := c.day(ctx, params, o)
		if err != nil {
			return fmt.Errorf("seed %d, clouds: %w", params.Seed, err)
		}
		seeds[n] = runs
		if n == 0 {
			first = sites
		}
		progress()
		return nil
	})
	if err != nil {
		return nil, err
	}
	w := &World{Taken: c.measured.taken, SelfMS: c.measured.self, Share: c.params.Share, Least: c.params.Least}
	egress := c.egress()
	for i, s := range first {
		w.Sites = append(w.Sites, SiteOf{s.Name, s.Capacity, egress[i]})
	}
	for _, runs := range seeds {
		w.Runs = append(w.Runs, runs...)
	}
	return w, nil
}

// day plays one day.
func (c *clouds) day(ctx context.Context, params workload.Params, o *Options) ([]Run, []placement.Site, error) {
	sites := make([]whatif.Site, len(c.chosen))
	for i, r := range c.chosen {
		at := &c.measured.regions[r]
		sites[i] = whatif.Site{Name: at.name, Lat: at.lat, Lon: at.lon}
	}
	frames, _, err := frames(ctx, params, whatif.Options{
		Sites: sites, Weights: true, Network: table{c.measured, c.chosen},
	})
	if err != nil {
		return nil, nil, err
	}
	placed := capacities(sites, c.capacity(frames, sites))
	s := newStage(frames, placed, o.Params.Alpha, o.Params.Beta)
	s.objective.Egress = c.egress()
	s.budget, s.plans, s.advice = roughly, false, o.Params.Advice
	s.play.Prices = func(from, to int16) float64 { return c.measured.usd[c.chosen[from]][c.chosen[to]] }
	runs, err := s.all()
	if err != nil {
		return nil, nil, err
	}
	for i := range runs {
		runs[i].Seed, runs[i].Model, runs[i].Case = params.Seed, "world", "clouds"
	}
	return runs, placed, nil
}

// capacity is the share of each site's busiest hour, were each request served by
// the nearest, and at least the second share of the mean of these hours.
func (c *clouds) capacity(frames []*whatif.Frame, sites []whatif.Site) []int64 {
	o := whatif.NewOthers(sites, false, whatif.Play{Capacity: make([]int64, len(sites))})
	busiest, mean := make([]float64, len(sites)), 0.0
	for _, f := range frames {
		for j, t := range o.Step(f)[0].Traffic {
			busiest[j] = max(busiest[j], float64(t))
		}
	}
	for _, b := range busiest {
		mean += b / float64(len(busiest))
	}
	out := make([]int64, len(sites))
	for j, b := range busiest {
		out[j] = int64(max(c.params.Share*b, c.params.Least*mean))
	}
	return out
}

// egress is what a GB costs that leaves a site, in the mean over the others: the
// policy knows one price a site. What moves really cost goes by pairs.
func (c *clouds) egress() []float64 {
	out := make([]float64, len(c.chosen))
	for i, from := range c.chosen {
		for _, to := range c.chosen {
			if from != to {
				out[i] += c.measured.usd[from][to] / float64(len(c.chosen)-1)
			}
		}
	}
	return out
}

// tables are the run's tables.
func (w *World) tables() []sheet.Table {
	by, order := map[string][]*Run{}, []string{}
	for i := range w.Runs {
		x := &w.Runs[i]
		if by[x.Strategy] == nil {
			order = append(order, x.Strategy)
		}
		by[x.Strategy] = append(by[x.Strategy], x)
	}
	t := sheet.Table{
		Title: fmt.Sprintf("Measured round trips and prices: %d regions of three providers, users around the world, median (range) of %d days", len(w.Sites), len(by[order[0]])),
		Head: []string{
			"strategy", "execution delay", "reduction, %", "latency mean, ms", "p99", "site hours over", "moves", "relieving", "between sites, MB/h", "copies",
			"egress, US cents a day", "$ a GB sent",
		},
		Notes: []string{
			fmt.Sprintf("Round trips: means of tier PREMIUM both ways, from the user's region to the site as measured in that direction (they are not symmetric); %d pairs of %d regions, "+
				"%d of them measured the other way only. %d rows of other tiers are not used. Inside a region: %.2f ms, the median of the least round trips of the %d self pairs, all of them "+
				"between tiers. A user's way to the region nearest to it is by the formula, 0.02 ms a km + 5 ms.",
				w.Taken.Pairs, w.Taken.Regions, w.Taken.Reversed, w.Taken.OtherTier, w.SelfMS, w.Taken.Selves),
			"Policies and baselines weigh by distance, as everywhere; measured are only the results. Dollars are of traffic between sites (moves, copies of writes), by pair of regions, 2022; " +
				"what goes to users is not priced, since no table has it. A day of 1 KB messages is small: see the last column.",
			fmt.Sprintf("Capacity: %g %% of the site's own busiest hour under the baseline, at least %g %% of the mean of these. The busiest hour of all sites "+
				"together comes to %s %% of all capacity.", 100*w.Share, 100*w.Least, spreadOf(by[order[0]], func(x *Run) report.Figure { return report.Figure(100 * x.Peak) }).Text(0)),
		},
	}
	for _, s := range order {
		runs := by[s]
		row := append([]string{s}, cells(runs)...)
		row = append(row, spreadOf(runs, func(x *Run) report.Figure { return report.Figure(100 * x.USD) }).Text(3),
			spreadOf(runs, perGB).Text(3))
		t.Rows = append(t.Rows, row)
	}
	sites := sheet.Table{Title: "Sites of the run on measured round trips, first day", Head: []string{"region", "capacity, MB/h", "egress, $ a GB (mean)"}}
	for _, s := range w.Sites {
		sites.Rows = append(sites.Rows, []string{s.Name, report.Figure(float64(s.Capacity) / 1e6).Text(2), report.Figure(s.Egress).Text(3)})
	}
	return []sheet.Table{t, sites}
}

// perGB is what a GB between sites cost.
func perGB(x *Run) report.Figure {
	if x.Between == 0 {
		return report.Unknown()
	}
	return report.Figure(x.USD / float64(x.Between) * 1e9)
}
