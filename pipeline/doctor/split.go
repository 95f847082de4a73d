package doctor

import (
	"fmt"
	"slices"
	"strings"

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
