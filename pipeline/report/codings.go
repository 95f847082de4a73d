package report

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"penstock/consumers/decider/coding"
	"penstock/infra/bus"
	"penstock/schemas/control"
	"penstock/schemas/event"
)

// CodingReport is what was decided of kind coding: the section coding of report.json,
// of replays that decide it.
type CodingReport struct {
	Config string `json:"config"` // digest of the policy's configuration
	Policy string `json:"policy"`
	// Windows is how many were decided, Incomplete how many of them lack events, on
	// which nothing is decided.
	Windows    int `json:"windows"`
	Incomplete int `json:"windows_incomplete"`
	// Tables is how many were ordered; Changes how many of them differ from the one
	// before: the rest are sent again before their time is over.
	Tables  int              `json:"tables"`
	Changes int              `json:"changes"`
	Coders  []CoderReport    `json:"coders"`
	Reasons map[string]int64 `json:"reasons"`
}

// CoderReport is one coder.
type CoderReport struct {
	Name    string `json:"name"`
	Tables  int    `json:"tables"`
	Changes int    `json:"changes"`
	// Table is the last one, Since the end of the window that it was first ordered in.
	Table *control.CodingTable `json:"table,omitempty"`
	Since time.Time            `json:"since,omitzero"`
	// Models are the last fits, by store and op.
	Models []FittedModel `json:"models"`
	// Read and Write are the tasks that the recording has: the codes that were used,
	// whatever the tables would have chosen.
	Read  CodesUsed `json:"read"`
	Write CodesUsed `json:"write"`
	// Price is what a million reads cost, in US dollars.
	Price ReadPrice `json:"price"`
	// Backlog is what its queue said once a second; nil: nothing.
	Backlog *BacklogSeen `json:"backlog,omitempty"`
	// Series are the codes by window.
	Series []CodePoint `json:"series"`

	cells map[codeKey]int64 // tasks
}

// FittedModel is the delay of the tasks of a store: Delta + Exp(mean Psi), ms and ms a MB.
type FittedModel struct {
	Store   string              `json:"store"`
	Op      string              `json:"op"`
	Window  time.Time           `json:"window_end"` // of the last fit
	Model   control.CodingDelay `json:"model"`
	Fits    int                 `json:"fits"`
	Samples string              `json:"samples"` // in words
	// Untold: what the samples leave open rests on the fit before.
	Untold bool `json:"untold,omitempty"`
}

// CodesUsed are the codes of an operation's tasks.
type CodesUsed struct {
	Tasks     int64      `json:"tasks"`
	Cancelled int64      `json:"cancelled"`
	Failed    int64      `json:"failed"`
	Requests  float64    `json:"requests"` // by their tasks
	Codes     []CodeUsed `json:"codes"`    // by k, then n
	K         []KShare   `json:"k"`        // by k
	// Neighbours is the greatest share of requests on two neighbouring k.
	Neighbours float64 `json:"two_neighbouring_k"`
}

// CodeUsed is the requests of a code.
type CodeUsed struct {
	N     int     `json:"n"`
	K     int     `json:"k"`
	Share float64 `json:"share"`
}

// KShare is the share of requests with a k.
type KShare struct {
	K     int     `json:"k"`
	Share float64 `json:"share"`
}

// ReadPrice is what a million reads cost: as they were, and at most under the tables.
type ReadPrice struct {
	RequestsPerRead Figure  `json:"requests_per_read"`
	AsWere          Figure  `json:"usd_per_million_reads"`
	MostRequests    int     `json:"most_requests_per_read"`
	Most            float64 `json:"most_usd_per_million_reads"`
}

// BacklogSeen is the requests that waited.
type BacklogSeen struct {
	Mean float64 `json:"mean"`
	Most int64   `json:"most"`

	gauges, sum int64
}

// CodePoint is the mean code of the requests of a window; zeros without any.
type CodePoint struct {
	Window  time.Time `json:"window_end"`
	Read    MeanCode  `json:"read"`
	Write   MeanCode  `json:"write"`
	Backlog Figure    `json:"backlog"` // mean
}

// MeanCode is a mean over requests.
type MeanCode struct {
	Requests float64 `json:"requests"`
	N        float64 `json:"n"`
	K        float64 `json:"k"`
}

// CodingsOf says whose tables are reported.
type CodingsOf struct {
	Config string // digest
	Policy string
	Coders []CodingsOfCoder
	// USDPerMillionReads is the price of requests to stores.
	USDPerMillionReads float64
}

// CodingsOfCoder is a coder and its stores.
type CodingsOfCoder struct {
	Name   string
	Stores []string
}

// codeKey is tasks of one sort.
type codeKey struct {
	op      string
	n, k    int
	outcome string
}

// Codings gathers the section from what is on a bus. Its methods do nothing on nil, so
// that a replay without coders has none.
type Codings struct {
	report CodingReport
	price  float64
	coders map[string]*CoderReport
	stores map[string]*CoderReport
}

// ReadCodings reads the decisions and tables of coding.
func ReadCodings(ctx context.Context, client *bus.Client, of CodingsOf) (*Codings, error) {
	s := &Codings{
		report: CodingReport{Config: of.Config, Policy: of.Policy, Coders: make([]CoderReport, len(of.Coders)), Reasons: map[string]int64{}},
		price:  of.USDPerMillionReads, coders: map[string]*CoderReport{}, stores: map[string]*CoderReport{},
	}
	for i, c := range of.Coders {
		x := &s.report.Coders[i]
		*x = CoderReport{Name: c.Name, Models: []FittedModel{}, Series: []CodePoint{}, cells: map[codeKey]int64{}}
		s.coders[c.Name] = x
		for _, store := range c.Stores {
			s.stores[store] = x
		}
	}
	if err := eachDecided(ctx, client, control.Coding, s.decided, s.commanded); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Codings) decided(d *control.Decision) {
	s.report.Windows++
	if d.Incomplete {
		s.report.Incomplete++
	}
	for _, r := range d.Reasons {
		s.report.Reasons[r.Code] += max(r.Count, 1)
		x := s.coders[r.Scope]
		if x == nil {
			continue
		}
		switch r.Code {
		case coding.Fitted:
			m := x.model(r.Evidence)
			m.Window, m.Samples, m.Untold = d.Window.End, r.Text, false
			m.Fits++
			m.Model = control.CodingDelay{
				Delta: numberIn(r.Evidence, "delta_ms"), DeltaPerMB: numberIn(r.Evidence, "delta_ms_per_mb"),
				Psi: numberIn(r.Evidence, "psi_ms"), PsiPerMB: numberIn(r.Evidence, "psi_ms_per_mb"),
			}
		case coding.Untold:
			x.model(r.Evidence).Untold = true
		}
	}
}

// model is the entry of a store and op.
func (x *CoderReport) model(evidence map[string]any) *FittedModel {
	store, _ := evidence["store"].(string)
	op, _ := evidence["op"].(string)
	i := slices.IndexFunc(x.Models, func(m FittedModel) bool { return m.Store == store && m.Op == op })
	if i < 0 {
		i = len(x.Models)
		x.Models = append(x.Models, FittedModel{Store: store, Op: op})
	}
	return &x.Models[i]
}

// numberIn is a number of evidence, as JSON has them; 0 without.
func numberIn(evidence map[string]any, key string) float64 {
	v, _ := evidence[key].(float64)
	return v
}

func (s *Codings) commanded(c *control.Command) {
	s.report.Tables++
	x := s.coders[c.Scope]
	if x == nil {
		return // of a coder that the configuration had before
	}
	x.Tables++
	x.Price.MostRequests = max(x.Price.MostRequests, int(numberIn(c.Reason.Evidence, "most_requests_per_read")))
	x.Price.Most = max(x.Price.Most, numberIn(c.Reason.Evidence, "most_usd_per_million_reads"))
	if c.Reason.Code == coding.Renewed {
		return
	}
	x.Table, x.Since = c.Coding, c.Window.End
	x.Changes++
	s.report.Changes++
}

// Fill adds the section to a report.
func (s *Codings) Fill(r *Report) {
	if s == nil {
		return
	}
	for i := range s.report.Coders {
		x := &s.report.Coders[i]
		slices.SortFunc(x.Models, func(a, b FittedModel) int { return cmp.Or(cmp.Compare(a.Store, b.Store), cmp.Compare(a.Op, b.Op)) })
		x.Read, x.Write = x.used(event.Read), x.used(event.Write)
		x.Price.RequestsPerRead, x.Price.AsWere = Unknown(), Unknown()
		if x.Read.Requests > 0 {
			each := float64(x.Read.Tasks) / x.Read.Requests
			x.Price.RequestsPerRead, x.Price.AsWere = Figure(rounded(each)), Figure(rounded(each*max(0, s.price)))
		}
		if b := x.Backlog; b != nil {
			b.Mean = rounded(float64(b.sum) / float64(b.gauges))
		}
	}
	r.Coding = &s.report
}

// used are the codes of an operation.
func (x *CoderReport) used(op event.Op) CodesUsed {
	u := CodesUsed{Codes: []CodeUsed{}, K: []KShare{}}
	byCode, byK := map[[2]int]float64{}, map[int]float64{}
	for _, key := range sortedCells(x.cells) {
		if key.op != op.String() {
			continue
		}
		n := x.cells[key]
		u.Tasks += n
		switch key.outcome {
		case event.TaskCancelled:
			u.Cancelled += n
		case event.TaskFailed:
			u.Failed += n
		}
		of := float64(n) / float64(key.n)
		u.Requests += of
		byCode[[2]int{key.k, key.n}] += of
		byK[key.k] += of
	}
	for code, n := range byCode {
		u.Codes = append(u.Codes, CodeUsed{N: code[1], K: code[0], Share: rounded(n / u.Requests)})
	}
	for k, n := range byK {
		u.K = append(u.K, KShare{K: k, Share: rounded(n / u.Requests)})
		u.Neighbours = max(u.Neighbours, rounded((n+byK[k+1])/u.Requests))
	}
	slices.SortFunc(u.Codes, func(a, b CodeUsed) int { return cmp.Or(cmp.Compare(a.K, b.K), cmp.Compare(a.N, b.N)) })
	slices.SortFunc(u.K, func(a, b KShare) int { return cmp.Compare(a.K, b.K) })
	u.Requests = rounded(u.Requests)
	return u
}

// sortedCells are the keys of cells in one order, so that sums have one order too.
func sortedCells(cells map[codeKey]int64) []codeKey {
	keys := make([]codeKey, 0, len(cells))
	for k := range cells {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b codeKey) int {
		return cmp.Or(cmp.Compare(a.op, b.op), cmp.Compare(a.n, b.n), cmp.Compare(a.k, b.k), cmp.Compare(a.outcome, b.outcome))
	})
	return keys
}

// summary is what a person is told at a terminal.
func (s *CodingReport) summary(b *strings.Builder) {
	fmt.Fprintf(b, "coding   %d windows decided by policy %s, %d tables, %d of them new", s.Windows, s.Policy, s.Tables, s.Changes)
	if s.Incomplete > 0 {
		fmt.Fprintf(b, "; %d windows lack events", s.Incomplete)
	}
	b.WriteString("\n")
	for i := range s.Coders {
		x := &s.Coders[i]
		fmt.Fprintf(b, "  %s: %s reads, %s writes; %s requests to stores a read, $%s a million reads, at most $%s\n", x.Name,
			grouped(fmt.Sprintf("%.0f", x.Read.Requests)), grouped(fmt.Sprintf("%.0f", x.Write.Requests)),
			x.Price.RequestsPerRead.Text(2), x.Price.AsWere.Text(2), trimmed(x.Price.Most))
		for _, m := range x.Models {
			fmt.Fprintf(b, "    %s %s: Δ %s + %s/MB, Ψ %s + %s/MB ms, %s\n", m.Store, m.Op, trimmed(m.Model.Delta), trimmed(m.Model.DeltaPerMB),
				trimmed(m.Model.Psi), trimmed(m.Model.PsiPerMB), m.told())
		}
		if len(x.Read.K) > 0 {
			fmt.Fprintf(b, "    reads by k: %s\n", kText(x.Read.K))
		}
	}
	fmt.Fprintf(b, "  reasons: %s\n", Reasons(s.Reasons))
}

// told says what a model rests on.
func (m *FittedModel) told() string {
	if m.Untold {
		return m.Samples + ", too alike in size to tell all of it"
	}
	return m.Samples
}

// kText writes shares by k in brief.
func kText(shares []KShare) string {
	var parts []string
	for _, k := range shares {
		parts = append(parts, fmt.Sprintf("%d: %s %%", k.K, trimmed(100*k.Share)))
	}
	return strings.Join(parts, ", ")
}
