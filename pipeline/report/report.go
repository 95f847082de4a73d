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
	Version int `json:"version"`
	// Kind is replay, or shadow for what closed windows alone say.
	Kind   string `json:"kind"`
	Config string `json:"config"` // digest of the policy's configuration
	Run    string `json:"run"`
	// Strategy is the one that the report is about; the figures beside it are its.
	Strategy string `json:"strategy"`
	Text     string `json:"text"`
	Figures
	Account window.Account `json:"account"`
	Windows []WindowReport `json:"windows"`
	Moves   Moves          `json:"moves"`
	Sites   []SiteReport   `json:"sites"`
	// Baselines are what others would have shown over the same windows.
	Baselines map[string]Baseline `json:"baselines"`
	// Unserved are located requests without a known owner or site: like the
	// unlocated ones they are in no delay.
	Unserved      int64         `json:"requests_without_site"`
	LatencySource LatencySource `json:"latency_source"`
	// AsRecorded is set for a replay that served each request where the recording
	// says: its decisions changed nothing in that.
	AsRecorded bool              `json:"served_as_recorded,omitempty"`
	Reasons    map[string]int64  `json:"reasons"`
	Stores     *Stores           `json:"stores,omitempty"`
	Schedule   *Schedule         `json:"schedule,omitempty"`
	Incomplete []window.Interval `json:"incomplete,omitempty"`
	// Split is set for a replay that decides split too.
	Split *SplitReport `json:"split,omitempty"`
	// Coding is set for a replay that decides coding too.
	Coding *CodingReport `json:"coding,omitempty"`
	// Servers is set for a replay that decides servers too.
	Servers *ServersReport `json:"servers,omitempty"`
}

// WindowReport is one placement window of the report's own strategy.
type WindowReport struct {
	Start   time.Time        `json:"start"`
	End     time.Time        `json:"end"`
	Case    string           `json:"case"`
	Mode    string           `json:"mode"`
	Moves   int              `json:"moves"`
	Done    int              `json:"done"`
	Bytes   int64            `json:"bytes_moved"`
	Egress  float64          `json:"egress_usd"`
	Traffic map[string]int64 `json:"traffic"` // bytes by site
	Reasons map[string]int64 `json:"reasons,omitempty"`
}

// Moves sums up what was moved.
type Moves struct {
	Count     int    `json:"count"`
	Done      int    `json:"done"`
	Bytes     int64  `json:"bytes"`
	Windows   int    `json:"windows"` // with at least one move
	EgressUSD Figure `json:"egress_usd"`
}

// SiteReport is one site.
type SiteReport struct {
	Name        string `json:"name"`
	Capacity    int64  `json:"capacity_bytes_per_window"`
	Busiest     int64  `json:"busiest_window_bytes"`
	OverWindows int    `json:"windows_over_capacity"`
}

// Baseline is what another strategy would have shown over the same windows.
type Baseline struct {
	Text string `json:"text"`
	// Unknown says why nothing is known of it.
	Unknown string `json:"unknown,omitempty"`
	Figures
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
