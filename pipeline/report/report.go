package report

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"penstock/schemas/window"
)

// Version of report.json. It rises when a reader of the older one could
// misread the newer one.
const Version = 1

// Report is the content of report.json.
type Report struct {
	Version    int                 `json:"version"`
	Config     string              `json:"config"` // digest of the policy's configuration
	Run        string              `json:"run"`
	Account    window.Account      `json:"account"`
	Windows    []WindowReport      `json:"windows"`
	Moves      Moves               `json:"moves"`
	Sites      []SiteReport        `json:"sites"`
	Latency    Delay               `json:"latency_delay_ms"` // over all located requests
	LatencyR   Delay               `json:"latency_delay_reads_ms"`
	Execution  Execution           `json:"execution_delay"`
	Baselines  map[string]Baseline `json:"baselines"`
	Reasons    map[string]int64    `json:"reasons"`
	Stores     *Stores             `json:"stores,omitempty"`
	Schedule   *Schedule           `json:"schedule,omitempty"`
	Incomplete []window.Interval   `json:"incomplete,omitempty"`
}

// WindowReport is one placement window.
type WindowReport struct {
	Start   time.Time        `json:"start"`
	End     time.Time        `json:"end"`
	Case    string           `json:"case"`
	Mode    string           `json:"mode"`
	Moves   int              `json:"moves"`
	Done    int              `json:"done"`
	Bytes   int64            `json:"bytes_moved"`
	Egress  float64          `json:"egress_usd"`
	Traffic map[string]int64 `json:"traffic"` // bytes by site, as served
	// Latency is the mean latency delay in ms of each strategy, absent without a
	// located request.
	Latency map[string]float64 `json:"latency_delay_ms,omitempty"`
	Reasons map[string]int64   `json:"reasons,omitempty"`
}

// Moves sums up what was moved.
type Moves struct {
	Count     int     `json:"count"`
	Done      int     `json:"done"`
	Bytes     int64   `json:"bytes"`
	Windows   int     `json:"windows"` // with at least one move
	EgressUSD float64 `json:"egress_usd"`
}

// SiteReport is one site.
type SiteReport struct {
	Name        string `json:"name"`
	Capacity    int64  `json:"capacity_bytes_per_window"`
	Busiest     int64  `json:"busiest_window_bytes"`
	OverWindows int    `json:"windows_over_capacity"`
}

// Execution is the execution delay by Little's law, W = max(0, T − Ca)/T of a
// window at a site (PAPERS §1.2, 7), as a part of the window: the mean over
// sites and windows with traffic.
type Execution struct {
	Mean Figure `json:"mean"`
	// OverWindows is how many sites were over capacity, summed over windows.
	OverWindows int `json:"site_windows_over_capacity"`
	// Reduction is against the baseline nearest, in percent; unknown if that has
	// no delay.
	Reduction Figure `json:"reduction_percent"`
}

// Baseline is what another strategy would have shown over the same rows.
type Baseline struct {
	Text      string    `json:"text"`
	Latency   Delay     `json:"latency_delay_ms"`
	LatencyR  Delay     `json:"latency_delay_reads_ms"`
	Execution Execution `json:"execution_delay"`
	Copies    int       `json:"copies"`
	EgressUSD float64   `json:"egress_usd"`
}

// Stores says whether every owner's data is where and what it should be.
type Stores struct {
	Owners  int64    `json:"owners"`
	Records int64    `json:"records"`
	Bytes   int64    `json:"bytes"`
	Faults  []string `json:"faults,omitempty"`
}

// Schedule says how a paced replay kept its schedule.
type Schedule struct {
	Speed    string  `json:"speed"`
	MaxLagMS float64 `json:"max_lag_ms"`
	P99LagMS float64 `json:"p99_lag_ms"`
}

// strategyNames are the names of the strategies in a report.
var strategyNames = [strategies]string{"replay", "nearest", "distance-only"}

// Fill adds what the collector has seen to a report.
func (c *Collector) Fill(r *Report) {
	r.Version = Version
	r.Latency = c.all[asServed].summary(c.unlocated)
	r.LatencyR = c.reads[asServed].summary(c.unlocatedR)
	r.Reasons = map[string]int64{}
	for i := range c.hours {
		h := &c.hours[i]
		w := WindowReport{
			Start: h.Start, End: h.End, Case: h.Case, Mode: string(h.Mode), Moves: h.Moves,
			Done: h.Done, Bytes: h.Bytes, Egress: h.Egress, Traffic: map[string]int64{}, Reasons: h.Reasons,
		}
		if h.located > 0 {
			w.Latency = map[string]float64{}
			for st, name := range strategyNames {
				w.Latency[name] = ms(float64(h.delay[st]) / float64(h.located))
			}
		}
		for s, site := range c.sites {
			w.Traffic[site.Name] = h.Traffic[asServed][s]
		}
		for code, n := range h.Reasons {
			r.Reasons[code] += n
		}
		r.Windows = append(r.Windows, w)
		r.Moves.add(h)
	}
	base := c.execution(nearest)
	r.Execution = c.execution(asServed).against(base)
	for s, site := range c.sites {
		r.Sites = append(r.Sites, c.site(s, site))
	}
	r.Baselines = map[string]Baseline{
		"nearest": {
			Text:    "a full copy at every site, each request to the site nearest to the requester",
			Latency: c.all[nearest].summary(c.unlocated), LatencyR: c.reads[nearest].summary(c.unlocatedR),
			Execution: base, Copies: len(c.sites), EgressUSD: c.copiesCost(),
		},
		"distance-only": {
			Text:    "one copy at the site nearest to the owner, whatever the load",
			Latency: c.all[distanceOnly].summary(c.unlocated), LatencyR: c.reads[distanceOnly].summary(c.unlocatedR),
			Execution: c.execution(distanceOnly).against(base), Copies: 1,
		},
	}
}

func (m *Moves) add(h *Hour) {
	m.Count += h.Moves
	m.Done += h.Done
	m.Bytes += h.Bytes
	m.EgressUSD += h.Egress
	if h.Moves > 0 {
		m.Windows++
	}
}

func (c *Collector) execution(strategy int) Execution {
	e := Execution{Mean: Unknown(), Reduction: Unknown()}
	var sum float64
	n := 0
	for i := range c.hours {
		for s, t := range c.hours[i].Traffic[strategy] {
			if t == 0 {
				continue
			}
			n++
			if over := t - c.sites[s].Capacity; c.sites[s].Capacity > 0 && over > 0 {
				sum += share(over, t)
				e.OverWindows++
			}
		}
	}
	if n > 0 {
		e.Mean = Figure(sum / float64(n))
	}
	return e
}

func (e Execution) against(base Execution) Execution {
	if base.Mean > 0 {
		e.Reduction = 100 * (1 - e.Mean/base.Mean)
	}
	return e
}

func (c *Collector) site(s int, site Site) SiteReport {
	r := SiteReport{Name: site.Name, Capacity: site.Capacity}
	for i := range c.hours {
		t := c.hours[i].Traffic[asServed][s]
		r.Busiest = max(r.Busiest, t)
		if site.Capacity > 0 && t > site.Capacity {
			r.OverWindows++
		}
	}
	return r
}

// copiesCost is the egress of sending every write from its nearest site to all
// others, as the baseline with a full copy everywhere must.
func (c *Collector) copiesCost() float64 {
	var usd float64
	for s, site := range c.sites {
		usd += site.Egress * float64(c.writtenAt[s]) / 1e9 * float64(len(c.sites)-1)
	}
	return usd
}

// Write writes report.json and report.html into a folder.
func (r *Report) Write(dir string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "report.json"), append(b, '\n'), 0o644); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	page, err := r.HTML()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "report.html"), page, 0o644); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}
