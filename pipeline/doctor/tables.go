package doctor

import (
	"fmt"
	"strings"
	"time"

	"penstock/pipeline/report"
	"penstock/schemas/control"
)

const (
	// answeredWithin is how old a table may be that who follows it has not answered.
	answeredWithin = 10 * time.Second
	// goneAfter is after how long without an answer who follows is taken to be gone for
	// good; its consumer is too by then.
	goneAfter = time.Hour
)

// following says of a kind what its tables are made from, who follows them, and who
// could.
func following(k control.Kind) (from, who, could, concerned string) {
	switch k {
	case control.Coding:
		return "tasks", "coder", "penstock coder does", "penstock coder of that name does"
	case control.Servers:
		return "requests and gauges", "follower", "entry points of the site do, and penstock serverswitch", "entry points of the site do, and penstock serverswitch"
	}
	return "calls", "router", "entry points with components, or penstock router, do", "entry points with components, or a backend, route or rule for its links, do"
}

// table looks at a scope's last table.
func (x *examination) table(k *report.KindStatus, t *report.TableStatus) {
	what := string(k.Kind) + " of " + t.Scope
	from, follower, could, concerned := following(k.Kind)
	if t.AgeS == nil { // A replay has nobody who follows.
		return
	}
	if *t.LeftS < 0 && !k.Frozen {
		x.add("decisions", what, Look, fmt.Sprintf("the ttl of its last table is over: %ss do without one", follower), "too few "+from+" to decide it anew, or the decider is gone")
	}
	if len(t.Routers) == 0 && *t.AgeS > int64(answeredWithin/time.Second) {
		x.add("decisions", what, Look, fmt.Sprintf("no %s has answered epoch %d: nobody follows it", follower, t.Epoch), could)
	}
	others, gone := 0, 0
	for _, r := range t.Routers {
		if r.Gone { // It is no follower any more: status tells of it.
			gone++
			continue
		}
		name := strings.TrimSpace(r.By + " " + r.Target)
		if r.Epoch < t.Epoch {
			if *t.AgeS > int64(answeredWithin/time.Second) && x.Clock.Now().Sub(r.At) < goneAfter {
				x.add("decisions", what, Look, fmt.Sprintf("%s %s has not answered epoch %d; its last answer was to %d", follower, name, t.Epoch, r.Epoch),
					"is it running? what it had in force stays there until its ttl is over")
			}
			continue
		}
		if r.NotConcerned() {
			others++
			continue
		}
		who := fmt.Sprintf("%s %s: epoch %d %s", follower, name, r.Epoch, r.Status)
		switch r.Status {
		case control.Failed, control.Refused:
			x.add("decisions", what, Broken, who+": "+r.Reason, "the last good table is in force there")
		case control.Advised:
			x.add("decisions", what, Look, who+": it records what is decided and applies nothing", "penstock mode "+string(k.Kind)+" act")
		}
	}
	if gone > 0 && gone == len(t.Routers) {
		x.add("decisions", what, Look, fmt.Sprintf("nothing is heard any more of any %s that has answered its tables: nobody follows them", follower), could)
	}
	if others > 0 && others+gone == len(t.Routers) && *t.AgeS > int64(answeredWithin/time.Second) {
		x.add("decisions", what, Look, fmt.Sprintf("no %s that has answered epoch %d carries these calls: nobody follows it", follower, t.Epoch), concerned)
	}
}
