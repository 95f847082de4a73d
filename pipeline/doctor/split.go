package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"penstock/pipeline/report"
	"penstock/schemas/control"
)

// components looks at what is to be split, in the configuration.
func (x *examination) components() {
	c := x.Config
	if !c.Splits() {
		return
	}
	if x.Split != nil {
		if err := x.Split(); err != nil {
			x.add("configuration", "components", Broken, err.Error(), "serve refuses to start, and so does a replay")
			return
		}
	}
	x.fine("configuration", "components", "%d, split by policy %s in windows of %s", len(c.Components), c.Split.Policy, c.Split.Window)
	for i := range c.Components {
		k := &c.Components[i]
		what, sites := "component "+k.Name, c.SitesOf(k.Name)
		if len(sites) == 1 {
			x.add("configuration", what, Look, "runs at "+sites[0]+" only: its calls cannot go elsewhere", "")
		}
		for _, pin := range k.Pin {
			if !slices.Contains(sites, pin) {
				x.add("configuration", what, Look, "may be called at "+pin+", and does not run there", "")
			}
		}
		if asked := k.Public || c.Entry.Internal != "" && len(k.Hosts)+len(k.Path) > 0; asked && len(k.Servers) == 0 && k.Name != c.Entry.Component {
			x.add("configuration", what, Broken, "entry points take calls for it, and it has no servers", "name its servers by site")
		}
	}
}

const (
	// answeredWithin is how old a table may be that a router has not answered.
	answeredWithin = 10 * time.Second
	// goneAfter is after how long without an answer a router is taken to be gone for
	// good; its consumer is too by then.
	goneAfter = time.Hour
)

// split looks at the last decision of split and at what became of its tables.
func (x *examination) split(s *report.Status) {
	k := &s.Kinds[slices.IndexFunc(s.Kinds, func(k report.KindStatus) bool { return k.Kind == control.Split })]
	steered := x.Config != nil && x.Config.Splits()
	switch {
	case !k.Decided && steered:
		x.add("decisions", "split", Look, "nothing was decided yet", "it takes calls with to_component and from_site, and a closed window")
		return
	case !k.Decided:
		return
	case x.Config != nil && !steered:
		x.add("decisions", "split", Look, "it was decided here, and the configuration has no components: nobody decides it any more",
			"routers do without its tables once their ttl is over")
		return
	}
	x.lastDecision(k, "applies no table")
	for _, r := range k.Decision.Reasons {
		switch {
		case r.Code == "UnknownSite" && r.Scope == "":
			x.add("decisions", "split", Look, "calls without a site, of the caller or of the callee, are left out", "entry points and spans must say from_site and to_site")
		case r.Code == "UnknownSite":
			x.add("decisions", "split", Look, fmt.Sprintf("calls from or to %.80q are left out: no site of that name", r.Scope), "name the site in the configuration, or map its name")
		case r.Code == "NoSite" || r.Code == "NoRoom":
			x.add("decisions", "split", Look, strings.TrimSpace(r.Scope+": "+r.Text), "")
		}
	}
	for i := range k.Tables {
		x.table(k, &k.Tables[i])
	}
}

// table looks at a scope's last table.
func (x *examination) table(k *report.KindStatus, t *report.TableStatus) {
	what := "split of " + t.Scope
	if t.AgeS == nil { // A replay has no routers.
		return
	}
	if *t.LeftS < 0 && !k.Frozen {
		x.add("decisions", what, Look, "the ttl of its last table is over: routers do without one", "too few calls to decide it anew, or the decider is gone")
	}
	if len(t.Routers) == 0 && *t.AgeS > int64(answeredWithin/time.Second) {
		x.add("decisions", what, Look, fmt.Sprintf("no router has answered epoch %d: nobody follows it", t.Epoch), "entry points with components, or penstock router, do")
	}
	others := 0
	for _, r := range t.Routers {
		name := strings.TrimSpace(r.By + " " + r.Target)
		if r.Epoch < t.Epoch {
			if *t.AgeS > int64(answeredWithin/time.Second) && x.Clock.Now().Sub(r.At) < goneAfter {
				x.add("decisions", what, Look, fmt.Sprintf("router %s has not answered epoch %d; its last answer was to %d", name, t.Epoch, r.Epoch),
					"is it running? what it had in force stays there until its ttl is over")
			}
			continue
		}
		if r.NotConcerned() {
			others++
			continue
		}
		who := fmt.Sprintf("router %s: epoch %d %s", name, r.Epoch, r.Status)
		switch r.Status {
		case control.Failed, control.Refused:
			x.add("decisions", what, Broken, who+": "+r.Reason, "the last good table is in force there")
		case control.Advised:
			x.add("decisions", what, Look, who+": it records what is decided and applies nothing", "penstock mode split act")
		}
	}
	if others > 0 && others == len(t.Routers) && *t.AgeS > int64(answeredWithin/time.Second) {
		x.add("decisions", what, Look, fmt.Sprintf("no router that has answered epoch %d carries these calls: nobody follows it", t.Epoch), "entry points with components, or a backend, route or rule for its links, do")
	}
}
