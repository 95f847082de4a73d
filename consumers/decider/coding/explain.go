package coding

import (
	"math"
	"time"

	"penstock/consumers/decider/coding/fit"
	"penstock/consumers/decider/coding/threshold"
	"penstock/schemas/control"
)

// Explanation says what is known of a coder and which table it has.
type Explanation struct {
	Coder  string               `json:"coder"`
	Policy control.CodingPolicy `json:"policy"`
	// Spread are the n and k of the layout spread; nil: any code can be read.
	Spread *Code `json:"spread,omitempty"`
	// Read and Write are what its table is made from: the mean of its stores' models by
	// their samples.
	Read  OperationView `json:"read"`
	Write OperationView `json:"write"`
	// Members are its stores, in the order of the configuration.
	Members []MemberView `json:"members"`
	// Used are the codes of the tasks of the history, of reads and writes apart.
	Used UsedView `json:"used"`
	// Price is what reads cost.
	Price PriceView `json:"price"`
	// Table is the one in force, Sent the end of the window in which it was last sent,
	// Epoch the last epoch.
	Table *control.CodingTable `json:"table,omitempty"`
	Sent  *time.Time           `json:"sent,omitempty"`
	Epoch uint64               `json:"epoch,omitempty"`
	// Apart is by how much the table in force differs from the one that would be made
	// now; another is sent beyond Change.
	Apart  float64 `json:"apart"`
	Change float64 `json:"change"`
	// Refused: no executor has taken the last table; Failed is how many in a row.
	Refused bool `json:"refused,omitempty"`
	Failed  int  `json:"failed,omitempty"`
}

// MemberView is what is known of one store.
type MemberView struct {
	Store string    `json:"store"`
	Read  ModelView `json:"read"`
	Write ModelView `json:"write"`
}

// ModelView is the delay of tasks, and what it rests on.
type ModelView struct {
	Model threshold.Model `json:"model"`
	// Fitted: the model rests on samples; else it is the configuration's.
	Fitted    bool           `json:"fitted"`
	Intervals []fit.Interval `json:"intervals,omitempty"` // as the model's fields, 95 %
	Untold    []string       `json:"untold,omitempty"`    // parameters that rest on the last fit
	Samples   int64          `json:"samples"`             // of the last fit
}

// OperationView is what is known of the reads or the writes of a coder.
type OperationView struct {
	Model threshold.Model `json:"model"`
	// Fitted: some store's model rests on samples.
	Fitted   bool            `json:"fitted"`
	Samples  int64           `json:"samples"`
	SizeMB   float64         `json:"size_mb"` // of a request, MB (10⁶ B)
	Limits   LimitsView      `json:"limits"`
	BestIdle Code            `json:"best_idle"` // the code of an empty queue
	Capacity CapacityOfCodes `json:"capacity"`
}

// LimitsView is what codes are chosen from.
type LimitsView struct {
	Connections int     `json:"connections"`
	KMin        int     `json:"k_min,omitempty"`
	KMax        int     `json:"k_max"`
	NMax        int     `json:"n_max"`
	RMax        float64 `json:"r_max"`
}

// CapacityOfCodes is requests a second of a coder with the smallest code, (1,1) or (k,k),
// and with that of an empty queue.
type CapacityOfCodes struct {
	Least float64 `json:"least"`
	Idle  float64 `json:"idle"`
}

// UsedView is codes by their requests.
type UsedView struct {
	Read  []CodeShare `json:"read,omitempty"`
	Write []CodeShare `json:"write,omitempty"`
}

// CodeShare is how many of the requests had a code.
type CodeShare struct {
	Code
	Share float64 `json:"share"`
}

// PriceView is what a million reads cost, in US dollars, by the requests to stores of
// each: as those of the history were, 0 without any, and at most.
type PriceView struct {
	RequestsPerRead float64 `json:"requests_per_read"`
	AsWere          float64 `json:"usd_per_million_reads"`
	MostRequests    int     `json:"most_requests_per_read"`
	Most            float64 `json:"most_usd_per_million_reads"`
	Cap             float64 `json:"max_read_price,omitempty"`
}

// Explain tells what the policy knows of a coder, by its name or that of one of its
// stores; false if neither is configured.
func (t *Policy) Explain(name string) (any, bool) {
	i, ok := t.index[name]
	if !ok {
		at, ok := t.stores[name]
		if !ok {
			return nil, false
		}
		i = at.coder
	}
	x, s := &t.config.Coders[i], &t.state.coders[i]
	e := &Explanation{
		Coder: x.Name, Policy: t.config.Policy, Table: s.inForce(), Epoch: s.standing.Epoch, Failed: s.standing.Failed,
		Refused: s.standing.Refused != "" && s.standing.Refused == s.last, Change: max(0, t.config.Change),
	}
	if x.spread() {
		e.Spread = &Code{N: x.N, K: x.K}
	}
	if s.sent != noTime {
		at := time.UnixMicro(s.sent).UTC()
		e.Sent = &at
	}
	for j, store := range x.members() {
		e.Members = append(e.Members, MemberView{Store: store, Read: s.members[j].ops[read].view(), Write: s.members[j].ops[write].view()})
	}
	table, _ := t.plan(i)
	if e.Table != nil {
		share, _ := apart(e.Table, table)
		e.Apart = rounded(share)
	}
	e.Read, e.Write = t.view(i, read, &table.Read), t.view(i, write, &table.Write)
	reads := s.together(read)
	e.Used = UsedView{Read: used(reads), Write: used(s.together(write))}
	e.Price = t.priceOf(requests(reads))
	e.Price.MostRequests = most(&table.Read)
	e.Price.Most, e.Price.Cap = rounded(float64(e.Price.MostRequests)*max(0, t.config.Price.Read)), t.config.MaxReadPrice
	return e, true
}

// Coders are the names that Explain knows as scopes.
func (t *Policy) Coders() []string {
	out := make([]string, len(t.config.Coders))
	for i := range t.config.Coders {
		out[i] = t.config.Coders[i].Name
	}
	return out
}

// priceOf is what so many reads cost, by their tasks.
func (t *Policy) priceOf(reads float64, tasks int64) (v PriceView) {
	if reads > 0 {
		each := float64(tasks) / reads
		v.RequestsPerRead, v.AsWere = rounded(each), rounded(each*max(0, t.config.Price.Read))
	}
	return v
}

func (o *operation) view() ModelView {
	v := ModelView{Model: o.model, Fitted: o.fitted, Untold: o.untold, Samples: o.samples}
	if o.fitted {
		v.Intervals = o.intervals[:]
	}
	return v
}

// together are the cells of an operation in the history, of all stores.
func (s *coder) together(op int) []cell {
	var all []pane
	for j := range s.members {
		all = append(all, s.members[j].ops[op].history...)
	}
	return together(all)
}

// used are the codes of cells, by n and k.
func used(cells []cell) (out []CodeShare) {
	all, _ := requests(cells)
	for _, c := range cells {
		of := float64(c.tasks) / float64(c.n)
		code := Code{N: int(c.n), K: int(c.k)}
		if n := len(out); n > 0 && out[n-1].Code == code { // of another size
			out[n-1].Share += of
			continue
		}
		out = append(out, CodeShare{Code: code, Share: of})
	}
	for i := range out {
		out[i].Share = math.Round(out[i].Share/all*1e4) / 1e4
	}
	return out
}

func (t *Policy) view(i, op int, c *control.CodingCodes) OperationView {
	s := &t.state.coders[i]
	size, m := s.sizes[op], s.model(op)
	l, _ := t.config.limits(&t.config.Coders[i], op, size)
	n, k := threshold.Table{K: c.K, N: c.N}.Code(0, c.RMax)
	v := OperationView{
		Model: m, Fitted: s.fitted(op), Samples: s.samples(op), SizeMB: size, BestIdle: Code{N: n, K: k},
		Limits: LimitsView{Connections: l.Connections, KMin: l.KMin, KMax: l.KMax, NMax: l.NMax, RMax: l.RMax},
	}
	if m.Validate() == nil {
		least := max(1, l.KMin)
		v.Capacity = CapacityOfCodes{Least: rounded(m.Capacity(size, least, least, l.Connections)), Idle: rounded(m.Capacity(size, n, k, l.Connections))}
	}
	return v
}
