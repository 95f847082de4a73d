package coding

import (
	"time"

	"penstock/consumers/decider/coding/fit"
	"penstock/consumers/decider/coding/threshold"
	"penstock/schemas/control"
)

// Explanation says what is known of a store and which table it has.
type Explanation struct {
	Store  string               `json:"store"`
	Policy control.CodingPolicy `json:"policy"`
	Read   OperationView        `json:"read"`
	Write  OperationView        `json:"write"`
	// Table is the one in force, Sent the end of the window in which it was last sent,
	// Epoch the last epoch.
	Table *control.CodingTable `json:"table,omitempty"`
	Sent  *time.Time           `json:"sent,omitempty"`
	Epoch uint64               `json:"epoch,omitempty"`
	// Refused: no executor has taken the last table; Failed is how many in a row.
	Refused bool `json:"refused,omitempty"`
	Failed  int  `json:"failed,omitempty"`
}

// OperationView is what is known of the reads or the writes of a store.
type OperationView struct {
	Model threshold.Model `json:"model"`
	// Fitted: the model rests on samples; else it is the configuration's.
	Fitted    bool            `json:"fitted"`
	Intervals []fit.Interval  `json:"intervals,omitempty"` // as the model's fields, 95 %
	Untold    []string        `json:"untold,omitempty"`    // parameters that rest on the last fit
	Samples   int64           `json:"samples"`             // of the last fit
	SizeMB    float64         `json:"size_mb"`             // of a request, MB (10⁶ B)
	Limits    LimitsView      `json:"limits"`
	BestIdle  Code            `json:"best_idle"` // the code of an empty queue
	Capacity  CapacityOfCodes `json:"capacity"`
}

// LimitsView is what codes are chosen from.
type LimitsView struct {
	Connections int     `json:"connections"`
	KMax        int     `json:"k_max"`
	NMax        int     `json:"n_max"`
	RMax        float64 `json:"r_max"`
}

// CapacityOfCodes is requests a second of a coder with (1,1) and with the code of an
// empty queue.
type CapacityOfCodes struct {
	One  float64 `json:"one"`
	Idle float64 `json:"idle"`
}

// Explain tells what the policy knows of a store; false if it isn't configured.
func (t *Policy) Explain(name string) (any, bool) {
	i, ok := t.index[name]
	if !ok {
		return nil, false
	}
	s := &t.state.stores[i]
	e := &Explanation{
		Store: name, Policy: t.config.Policy, Table: s.inForce(), Epoch: s.standing.Epoch, Failed: s.standing.Failed,
		Refused: s.standing.Refused != "" && s.standing.Refused == s.last,
	}
	if s.sent != noTime {
		at := time.UnixMicro(s.sent).UTC()
		e.Sent = &at
	}
	table, _ := t.plan(i)
	e.Read, e.Write = t.view(i, read, &table.Read), t.view(i, write, &table.Write)
	return e, true
}

func (t *Policy) view(i, op int, c *control.CodingCodes) OperationView {
	o := &t.state.stores[i].ops[op]
	l, _ := t.config.limits(&t.config.Stores[i], op, o.size)
	n, k := threshold.Table{K: c.K, N: c.N}.Code(0, c.RMax)
	v := OperationView{
		Model: o.model, Fitted: o.fitted, Untold: o.untold, Samples: o.samples, SizeMB: o.size, BestIdle: Code{N: n, K: k},
		Limits: LimitsView{Connections: l.Connections, KMax: l.KMax, NMax: l.NMax, RMax: l.RMax},
	}
	if o.fitted {
		v.Intervals = o.intervals[:]
	}
	if o.model.Validate() == nil {
		v.Capacity = CapacityOfCodes{One: rounded(o.model.Capacity(o.size, 1, 1, l.Connections)), Idle: rounded(o.model.Capacity(o.size, n, k, l.Connections))}
	}
	return v
}
