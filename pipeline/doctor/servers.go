package doctor

import (
	"fmt"
	"slices"

	"penstock/consumers/decider/servers"
	"penstock/consumers/decider/servers/switching"
	"penstock/pipeline/config"
	"penstock/pipeline/report"
	"penstock/schemas/control"
)

// dispatchers looks at the section servers of the configuration.
func (x *examination) dispatchers() {
	c := x.Config
	if !c.Dispatches() {
		return
	}
	if x.Servers != nil {
		if err := x.Servers(); err != nil {
			x.add("configuration", "servers", Broken, err.Error(), "serve refuses to start, and so do entry points")
			return
		}
	}
	for _, f := range x.Programs {
		x.add("configuration", "servers", Look, f.String(), "on the machines of penstock serverswitch it is needed, on others not")
	}
	s, w := &c.Servers, &c.Servers.Switching
	x.fine("configuration", "servers", "policy %s with %d classes, at most %d requests in service at a server; switching: %s", s.Policy, len(s.Classes), s.InService, w.Policy)
	if _, ok := s.Classes[config.OtherClass]; !ok && len(c.Entry.Class) == 0 {
		x.add("configuration", "servers", Look, "no rule of entry.class gives a request a class, and servers.classes has no other: no request has a limit", "a class other, or rules in entry.class")
	}
	if c.Entry.Retry.Attempts < 2 {
		x.add("configuration", "servers", Look, "entry.retry.attempts is 1: requests in service at a server that dies fail, also those that may be sent twice", "entry.retry.attempts: 2")
	}
	for i := range c.Sites {
		site := &c.Sites[i]
		if n := len(site.Servers); n > 0 && w.Policy != config.SwitchNone && n <= w.Least {
			x.add("configuration", "servers of "+site.Name, Look, fmt.Sprintf("it has %d servers, and %d are on at least: none is ever turned off", n, w.Least), "")
		}
	}
}

// servers looks at the last decision of servers and at what became of its tables.
func (x *examination) servers(s *report.Status) {
	k := &s.Kinds[slices.IndexFunc(s.Kinds, func(k report.KindStatus) bool { return k.Kind == control.Servers })]
	steered := x.Config != nil && x.Config.Dispatches()
	switch {
	case !k.Decided && steered:
		x.add("decisions", "servers", Look, "nothing was decided yet", "it takes requests or gauges, which entry points send, and a closed window")
		return
	case !k.Decided:
		return
	case x.Config != nil && !steered:
		x.add("decisions", "servers", Look, "it was decided here, and the configuration has no servers.classes: nobody decides it any more",
			"dispatchers do without its tables once their ttl is over")
		return
	}
	x.lastDecision(k, "applies no table")
	for _, r := range k.Decision.Reasons {
		switch r.Code {
		case servers.UnknownSite:
			x.add("decisions", "servers", Look, fmt.Sprintf("requests of the site %.80q are left out: the configuration has no servers there", r.Scope), "do entry points and decider have the same configuration?")
		case servers.UnknownServer:
			x.add("decisions", "servers of "+r.Scope, Look, fmt.Sprintf("requests of the server %.80v are left out: the configuration doesn't have it there", r.Evidence["server"]), "do entry points and decider have the same configuration?")
		case servers.Turned:
			x.add("decisions", "servers of "+r.Scope, Look, fmt.Sprintf("no server got %v requests of the last window, and they failed", r.Evidence["requests"]), "are all queues full, or all servers away?")
		case servers.BadRow:
			x.add("decisions", "servers", Look, fmt.Sprintf("%d rows cannot be used", r.Count), r.Text)
		case servers.ServerFailed:
			x.add("decisions", "servers of "+r.Scope, Broken, fmt.Sprintf("%v: %s", r.Evidence["server"], r.Text), "look at the server switch: penstock explain servers "+r.Scope)
		case servers.SwitchRefused, string(switching.Panic):
			x.add("decisions", "servers of "+r.Scope, Broken, r.Text, "look at the server switch: penstock explain servers "+r.Scope)
		}
	}
	for i := range k.Tables {
		x.table(k, &k.Tables[i])
	}
}
