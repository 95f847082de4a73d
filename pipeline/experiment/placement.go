package experiment

import (
	"context"
	"fmt"

	"penstock/consumers/decider/placement"
	"penstock/infra/examples"
	"penstock/pipeline/experiment/sheet"
	"penstock/pipeline/experiment/side"
	"penstock/pipeline/whatif"
	"penstock/producers/workload"
)

// Options say how much of the experiment of placement is run.
type Options struct {
	Params Params
	// Seeds is how many days of each friend model are made; at least 1.
	Seeds int
	// Quick leaves out what is varied but for its ends, and the friend models
	// that judge nothing.
	Quick bool
	// Data is the folder that holds clouds-skyplane and cloud-regions-coords; ""
	// leaves the run on measured round trips out.
	Data string
	// Judged is on how many days of each model plans are judged on the printed
	// objective, which takes longest; 0: on all.
	Judged int
	// Day is the workload of which friend models are made; nil: the paper's day.
	Day *workload.Params
	// Workers is how many days are played at once; 0: one a processor.
	Workers int
	// Progress is told after each day how many of all are done; nil: nobody is.
	Progress func(done, all int)
}

// variedSeeds is on how many days things are varied: enough to see a trend.
const variedSeeds = 3

// Result is what the experiment of placement came to.
type Result struct {
	Version     int             `json:"version"`
	Standard    string          `json:"standard"`
	Models      []Model         `json:"-"`
	Cases       []Case          `json:"-"`
	Sites       []string        `json:"sites"`
	Alpha       float64         `json:"alpha"`
	Beta        float64         `json:"beta"`
	Advice      float64         `json:"advice"`
	Days        []Day           `json:"days"`
	Runs        []Run           `json:"runs"`
	Varied      []Varied        `json:"sensitivity"`
	Clouds      *World          `json:"clouds,omitempty"`
	Verdicts    []sheet.Verdict `json:"verdicts"`
	Quick       bool            `json:"quick"`
	VariedSeeds int             `json:"sensitivity_seeds"`
}

// Day is a day that was made up.
type Day struct {
	Seed     uint64 `json:"seed"`
	Model    string `json:"model"`
	Writes   int64  `json:"writes"`
	Requests int64  `json:"requests"`
	// Peak is the bytes of the busiest hour by site, were each request served by
	// the nearest, as the generator expects it.
	Peak []float64 `json:"peak_bytes"`
}

// Varied is what a policy came to with one thing changed.
type Varied struct {
	What     string `json:"what"`
	Value    string `json:"value"`
	Standard bool   `json:"standard"` // the value that all other tables have
	Run
}

// day is one day to be played, and what it came to.
type day struct {
	model  *Model
	seed   uint64
	vary   bool
	keep   bool
	judged bool
	result Day
	runs   []Run
	varied []Varied
}

// Placement runs the experiment. The error wraps ErrParams or ErrData, or is the
// context's.
func Placement(ctx context.Context, o Options) (*Result, error) {
	base, err := o.day()
	if err != nil {
		return nil, err
	}
	if o.Seeds < 1 {
		return nil, fmt.Errorf("%w: %d seeds, expected at least 1", ErrParams, o.Seeds)
	}
	p := &o.Params
	if err := p.check(); err != nil {
		return nil, err
	}
	for _, c := range p.Cases {
		if len(c.Capacity) != len(base.Scale.Sites) {
			return nil, fmt.Errorf("%w: case %s has %d capacities, the workload %d sites", ErrParams, c.Name, len(c.Capacity), len(base.Scale.Sites))
		}
	}
	r := &Result{Version: 1, Standard: p.Standard, Models: p.Models, Cases: p.Cases, Alpha: p.Alpha, Beta: p.Beta, Advice: p.Advice, Quick: o.Quick}
	for _, s := range base.Scale.Sites {
		r.Sites = append(r.Sites, s.Name)
	}
	var world *clouds
	if o.Data != "" {
		if world, err = loadClouds(o.Data, p.Clouds); err != nil {
			return nil, err
		}
	}
	days := plan(&o)
	extra := 0
	if world != nil {
		extra = min(o.Seeds, variedSeeds)
	}
	progress := side.Counter(o.Progress, len(days)+extra)
	if err := side.Run(ctx, o.Workers, len(days), func(i int) error {
		err := days[i].play(ctx, base, &o)
		progress()
		return err
	}); err != nil {
		return nil, err
	}
	for i := range days {
		r.Days = append(r.Days, days[i].result)
		r.Runs = append(r.Runs, days[i].runs...)
		r.Varied = append(r.Varied, days[i].varied...)
		if days[i].vary {
			r.VariedSeeds++
		}
	}
	if world != nil {
		if r.Clouds, err = world.run(ctx, &o, progress); err != nil {
			return nil, err
		}
	}
	r.judge()
	return r, nil
}

func (o *Options) day() (workload.Params, error) {
	if o.Day != nil {
		return *o.Day, nil
	}
	return workload.Decode(examples.PaperDay, "paper-day.yaml")
}

// plan lists the days: the standard model's first.
func plan(o *Options) []day {
	var out []day
	for _, standard := range []bool{true, false} {
		for m := range o.Params.Models {
			model := &o.Params.Models[m]
			if (model.Name == o.Params.Standard) != standard || o.Quick && !standard {
				continue
			}
			for n := range o.Seeds {
				out = append(out, day{
					model: model, seed: o.Params.FirstSeed + uint64(n), vary: standard && n < variedSeeds, keep: standard && n == 0,
					judged: o.Judged == 0 || n < o.Judged,
				})
			}
		}
	}
	return out
}

// play makes the day up and plays all cases and strategies.
func (d *day) play(ctx context.Context, base workload.Params, o *Options) error {
	params := d.model.day(base, d.seed)
	sites := make([]whatif.Site, len(params.Scale.Sites))
	for i, s := range params.Scale.Sites {
		sites[i] = whatif.Site{Name: s.Name, Lat: s.Lat, Lon: s.Lon}
	}
	frames, plan, err := frames(ctx, params, whatif.Options{Sites: sites, Weights: true})
	if err != nil {
		return fmt.Errorf("seed %d, friends %s: %w", d.seed, d.model.Name, err)
	}
	d.result = Day{Seed: d.seed, Model: d.model.Name, Writes: plan.Writes, Requests: plan.Requests}
	for _, s := range plan.Sites {
		d.result.Peak = append(d.result.Peak, s.PeakBytes)
	}
	for _, c := range o.Params.Cases {
		if err := ctx.Err(); err != nil {
			return err
		}
		s := newStage(frames, capacities(sites, c.Capacity), o.Params.Alpha, o.Params.Beta)
		s.keepHours, s.advice, s.plans = d.keep, o.Params.Advice, d.judged
		runs, err := s.all()
		if err != nil {
			return fmt.Errorf("seed %d, friends %s, case %s: %w", d.seed, d.model.Name, c.Name, err)
		}
		d.add(c.Name, runs)
		if d.vary && c.Target > 0 {
			if err := d.change(s, &runs[0], c.Name, o); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *day) add(name string, runs []Run) {
	for i := range runs {
		runs[i].Seed, runs[i].Model, runs[i].Case = d.seed, d.model.Name, name
	}
	d.runs = append(d.runs, runs...)
}

func capacities(sites []whatif.Site, capacity []int64) []placement.Site {
	out := make([]placement.Site, len(sites))
	for i, s := range sites {
		out[i] = placement.Site{Name: s.Name, Lat: s.Lat, Lon: s.Lon, Capacity: capacity[i]}
	}
	return out
}

// all plays all strategies; the baseline is the first.
func (s *stage) all() ([]Run, error) {
	runs := s.baselines()
	for _, name := range []string{TMatch, Optimal} {
		run, err := s.policy(name, s.plans)
		if err != nil {
			return nil, err
		}
		runs = append(runs, run)
	}
	if s.advice > 0 {
		free := *s
		free.keepHours, free.play.Objective = false, nil
		free.objective.Headroom = s.advice
		for _, name := range []string{TMatch, Optimal} {
			run, err := free.policy(name, false)
			if err != nil {
				return nil, err
			}
			run.Strategy = Advised(name, s.advice)
			runs = append(runs, run)
		}
	}
	best, inexact := s.clairvoyant()
	best.Inexact = inexact
	runs = append(runs, best)
	for i := range runs {
		runs[i].against(&runs[0])
	}
	return runs, nil
}
