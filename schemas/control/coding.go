package control

import (
	"fmt"
	"slices"
)

// Limits of a coding table.
const (
	MaxCodingK = 32  // chunks needed
	MaxCodingN = 128 // chunks asked for
	// MaxCodingMB is the greatest size of a request that thresholds may be for.
	MaxCodingMB = 1e6
	// MaxBacklog is a threshold that no backlog reaches: the step below it is always
	// taken.
	MaxBacklog = 1e9
)

// CodingPolicy is how a coder chooses n and k.
type CodingPolicy string

// The policies of a coding table. All keep k ≤ n ≤ RMax·k, n ≤ len(N)+1 and
// k ≤ len(K)+1.
const (
	// CodingTOFEC, CodingStatic and CodingReplicate go by the thresholds: those of the
	// latter two are 0 or MaxBacklog, so that they give one code at any backlog.
	CodingTOFEC     CodingPolicy = "tofec"
	CodingStatic    CodingPolicy = "static"
	CodingReplicate CodingPolicy = "replicate"
	// CodingGreedy takes as many chunks as connections are idle, and no threshold.
	CodingGreedy CodingPolicy = "greedy"
	// CodingHedge goes by the thresholds too, but begins with k chunks: the others are
	// asked for after HedgeUS, if the request has not been answered by then.
	CodingHedge CodingPolicy = "hedge"
)

// CodingPolicies lists them.
var CodingPolicies = []CodingPolicy{CodingTOFEC, CodingGreedy, CodingStatic, CodingReplicate, CodingHedge}

// CodingTable is the payload of coding: which code a store's requests get at which
// backlog (the command's scope is the store). It replaces the table before it.
type CodingTable struct {
	Policy CodingPolicy `json:"policy"`
	Model  CodingModel  `json:"model"`
	Read   CodingCodes  `json:"read"`
	Write  CodingCodes  `json:"write"`
}

// CodingModel is the delay that tasks were found to have, for who wants to know why;
// a coder goes by the thresholds.
type CodingModel struct {
	Read  CodingDelay `json:"read"`
	Write CodingDelay `json:"write"`
}

// CodingDelay is that of a task of B megabytes (10⁶ B): Delta + DeltaPerMB·B, and an
// exponential of mean Psi + PsiPerMB·B, all in ms.
type CodingDelay struct {
	Delta      float64 `json:"delta_ms"`
	DeltaPerMB float64 `json:"delta_ms_per_mb"`
	Psi        float64 `json:"psi_ms"`
	PsiPerMB   float64 `json:"psi_ms_per_mb"`
}

// CodingCodes says which code is taken at a backlog of q waiting requests, smoothed:
// k = 1 + the number of thresholds of K above q, n the same of N, and then
// n = max(k, min(n, RMax·k)). Both lists fall or stay.
type CodingCodes struct {
	K    []float64 `json:"k"`
	N    []float64 `json:"n"`
	RMax float64   `json:"r_max"`
	// MB is the size of request that the thresholds are for, in MB (10⁶ B). A coder takes
	// √(size/MB) times the k, and n in proportion, for a request of another size; 0: the
	// same code whatever the size.
	MB float64 `json:"mb,omitempty"`
	// HedgeUS is after how many µs the chunks beyond k are asked for; 0: at once.
	HedgeUS int64 `json:"hedge_us,omitempty"`
}

func (t *CodingTable) canonical() *CodingTable {
	out := *t
	for _, c := range []*CodingCodes{&out.Read, &out.Write} {
		if c.K == nil {
			c.K = []float64{}
		}
		if c.N == nil {
			c.N = []float64{}
		}
	}
	return &out
}

// coding checks a table.
func (c *checker) coding(t *CodingTable) {
	if !slices.Contains(CodingPolicies, t.Policy) {
		c.fail("coding.policy", string(t.Policy), "tofec, greedy, static, replicate or hedge")
	}
	c.codingDelay("coding.model.read", t.Model.Read)
	c.codingDelay("coding.model.write", t.Model.Write)
	c.codingCodes("coding.read", &t.Read)
	c.codingCodes("coding.write", &t.Write)
}

func (c *checker) codingDelay(field string, d CodingDelay) {
	for _, v := range []struct {
		name  string
		value float64
	}{{"delta_ms", d.Delta}, {"delta_ms_per_mb", d.DeltaPerMB}, {"psi_ms", d.Psi}, {"psi_ms_per_mb", d.PsiPerMB}} {
		if v.value < 0 {
			c.fail(field+"."+v.name, fmt.Sprint(v.value), "0 or more")
		}
	}
}

func (c *checker) codingCodes(field string, x *CodingCodes) {
	c.thresholds(field+".k", x.K, MaxCodingK)
	c.thresholds(field+".n", x.N, MaxCodingN)
	if len(x.N) < len(x.K) {
		c.fail(field+".n", fmt.Sprint(len(x.N), " thresholds"), "at least as many as of k")
	}
	if !(x.RMax >= 1 && x.RMax <= MaxCodingN) {
		c.fail(field+".r_max", fmt.Sprint(x.RMax), fmt.Sprintf("1 to %d", MaxCodingN))
	}
	if !(x.MB >= 0 && x.MB <= MaxCodingMB) {
		c.fail(field+".mb", fmt.Sprint(x.MB), "0 to 1e6")
	}
	if x.HedgeUS < 0 {
		c.fail(field+".hedge_us", fmt.Sprint(x.HedgeUS), "0 or more")
	}
}

// thresholds checks a list of at most most-1 backlogs that don't rise.
func (c *checker) thresholds(field string, h []float64, most int) {
	if h == nil || len(h) >= most {
		c.fail(field, fmt.Sprint(len(h), " thresholds"), fmt.Sprintf("a list of at most %d", most-1))
		return
	}
	last := MaxBacklog
	for i, x := range h {
		if !(x >= 0 && x <= last) {
			c.fail(fmt.Sprintf("%s[%d]", field, i), fmt.Sprint(x), "0 or more, at most the one before it, at most 1e9")
		}
		last = x
	}
}
