package doctor

import (
	"fmt"
	"slices"
	"strings"

	"penstock/consumers/decider/coding"
	"penstock/pipeline/config"
	"penstock/pipeline/report"
	"penstock/schemas/control"
)

// coders looks at what is to be coded, in the configuration.
func (x *examination) coders() {
	c := x.Config
	if !c.Codes() {
		return
	}
	if x.Coding != nil {
		if err := x.Coding(); err != nil {
			x.add("configuration", "coders", Broken, err.Error(), "serve refuses to start, and so does a replay")
			return
		}
	}
	x.fine("configuration", "coders", "%d, coded by policy %s in windows of %s", len(c.Coders), c.Coding.Policy, c.Coding.Window)
	if c.Coding.MaxReadPrice > 0 && c.Prices.StoreReads == 0 {
		x.add("configuration", "coding", Look, "max_read_price caps nothing: prices.store_reads is 0", "say what a million requests cost")
	}
	for i := range c.Coders {
		x.coder(&c.Coders[i])
	}
}

// coder looks at what can be asked of one coder's stores.
func (x *examination) coder(k *config.Coder) {
	c, what := x.Config, "coder "+k.Name
	connections, needed := c.ConnectionsOf(k), c.Coding.KMax
	if k.LayoutName() == config.LayoutSpread {
		needed = k.K
		if most := c.Coding.MaxRequests; most < k.N {
			text := fmt.Sprintf("max_requests %d lets a read ask %d of its %d stores", most, max(most, k.K), k.N)
			if most <= k.K {
				text += ", and none in place of one that is slow"
			}
			x.add("configuration", what, Look, text, "coding.max_requests of at least the layout's n")
		}
		if each := c.Prices.StoreReads; c.Coding.MaxReadPrice > 0 && each > 0 && c.Coding.MaxReadPrice < float64(k.K)*each {
			x.add("configuration", what, Look, fmt.Sprintf("max_read_price %g is less than the %d requests that each read needs cost", c.Coding.MaxReadPrice, k.K), "a read asks for k in any case")
		}
	}
	if connections < needed {
		x.add("configuration", what, Look, fmt.Sprintf("%d connections, and a read may need %d chunks: they are fetched one after another", connections, needed), "more connections")
	}
}

// coding looks at the last decision of coding and at what became of its tables.
func (x *examination) coding(s *report.Status) {
	k := &s.Kinds[slices.IndexFunc(s.Kinds, func(k report.KindStatus) bool { return k.Kind == control.Coding })]
	steered := x.Config != nil && x.Config.Codes()
	switch {
	case !k.Decided && steered:
		x.add("decisions", "coding", Look, "nothing was decided yet", "it takes chunk tasks, which coders log, and a closed window")
		return
	case !k.Decided:
		return
	case x.Config != nil && !steered:
		x.add("decisions", "coding", Look, "it was decided here, and the configuration has no coders: nobody decides it any more",
			"coders do without its tables once their ttl is over")
		return
	}
	x.lastDecision(k, "applies no table")
	for _, r := range k.Decision.Reasons {
		switch r.Code {
		case coding.UnknownStore:
			x.add("decisions", "coding", Look, fmt.Sprintf("tasks of the store %.80q are left out: no coder of the configuration has it", r.Scope), "is it of a coder that another configuration names?")
		case coding.UnknownCoder:
			x.add("decisions", "coding", Look, fmt.Sprintf("the queue of the coder %.80q is left out: the configuration doesn't name it", r.Scope), "is it of another configuration?")
		case coding.BadRow:
			x.add("decisions", "coding", Look, fmt.Sprintf("%d tasks cannot be used", r.Count), r.Text)
		case coding.FailedTasks:
			x.add("decisions", "coding of "+r.Scope, Look, fmt.Sprintf("%v tasks to %v failed in the last window", r.Evidence["tasks"], r.Evidence["store"]), "is the store well?")
		}
	}
	for i := range k.Tables {
		t := &k.Tables[i]
		x.table(k, t)
		reads, _ := t.Reason.Evidence["read_samples"].(float64)
		writes, _ := t.Reason.Evidence["write_samples"].(float64)
		if reads+writes == 0 && t.Coding != nil {
			x.add("decisions", "coding of "+t.Scope, Look, "its thresholds rest on the delays of the configuration's beginning: too few tasks were measured yet", "")
		}
	}
}

// instead is what is done where no data is moved.
func (x *examination) instead() string {
	var done []string
	for _, k := range []struct {
		steered bool
		what    string
	}{{x.Config.Splits(), "calls are split"}, {x.Config.Dispatches(), "requests are given to servers"}, {x.Config.Codes(), "requests are coded"}} {
		if k.steered {
			done = append(done, k.what)
		}
	}
	return strings.Join(done, " and ")
}
