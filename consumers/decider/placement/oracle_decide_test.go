package placement

import (
	"cmp"
	"math"
	"slices"

	"penstock/schemas/control"
)

func (o *oracle) decide(in oracleInput) result {
	o.learn(in)
	o.planned = false
	res := result{why: map[string]int64{}, overs: map[string]int64{}, remains: map[string]int64{}}
	if in.incomplete {
		return res
	}
	o.evac = map[string]bool{}
	for _, s := range in.evacuate {
		o.evac[s] = o.isSite(s)
	}
	var requests, total int64
	for _, r := range in.traffic {
		requests += r.requests
	}
	enough := requests >= max(1, o.c.MinRequests)
	if enough {
		least := int64(math.MaxInt64)
		for _, s := range o.c.Sites {
			total += o.observed[s.Name]
			if !o.evac[s.Name] {
				least = min(least, s.Capacity)
			}
		}
		switch {
		case total <= least:
			res.kind = "minimal"
		case o.lastCase == "overhead-first" || o.lastCase == "overhead-continuous":
			res.kind = "overhead-continuous"
		default:
			res.kind = "overhead-first"
		}
		o.lastCase = res.kind
	}
	switch {
	case in.mode == control.Observe:
	case in.rollback != noTime:
		o.invert(in, &res)
	case enough:
		o.match(in, &res)
	}
	return res
}

// match is the L-match and, in an overhead case, the T-match on top of it.
func (o *oracle) match(in oracleInput, res *result) {
	o.planned = true
	want, why := o.base(res.kind)
	var taken []string
	if res.kind != "minimal" {
		taken = o.tmatch(want, why, res)
	}
	o.issue(in, want, why, taken, res)
}

// base returns the match before balancing, and why an owner stays.
func (o *oracle) base(kind string) (want, why map[string]string) {
	want, why = map[string]string{}, map[string]string{}
	o.expected = map[string]int64{}
	for owner := range o.owners {
		want[owner], why[owner] = o.baseOf(owner, kind)
		o.expected[want[owner]] += o.t[owner]
	}
	if kind == "overhead-continuous" {
		for _, s := range o.c.Sites {
			o.expected[s.Name] = max(o.expected[s.Name], o.observed[s.Name])
		}
	}
	return want, why
}

func (o *oracle) baseOf(owner, kind string) (string, string) {
	at := o.site[owner]
	if at == "" {
		return "", "LocationUnknown"
	}
	if m, ok := o.pending[owner]; ok {
		return m.To, "MoveUnderWay"
	}
	if kind == "overhead-continuous" && o.placed[owner] && o.resides(owner, at) {
		return at, "WithinCapacity"
	}
	var open []weight
	for _, w := range o.weights(owner) {
		if w.allowed {
			open = append(open, w)
		}
	}
	if len(open) == 0 {
		return at, "NoAllowedSite"
	}
	best := o.ties(open)
	switch {
	case slices.ContainsFunc(best, func(w weight) bool { return w.site == at }):
		return at, "NoImprovement"
	case o.held(owner) != "":
		return at, o.held(owner)
	case o.isRefused(owner, best[0].site):
		return at, "Rejected"
	}
	return best[0].site, ""
}

// tmatch takes owners out of overloaded sites and finds them others.
func (o *oracle) tmatch(want, why map[string]string, res *result) []string {
	var taken []string
	load := map[string]int64{}
	for _, s := range o.c.Sites {
		load[s.Name] = o.observed[s.Name]
		if res.kind == "overhead-first" {
			load[s.Name] = o.expected[s.Name]
		}
	}
	from := map[string]string{}
	for _, s := range o.c.Sites {
		excess := load[s.Name] - o.room(s.Name)
		var users []string
		for owner := range o.owners {
			if want[owner] == s.Name && (o.t[owner] > 0 || o.evac[s.Name]) {
				users = append(users, owner)
			}
		}
		var sum, n int64
		for _, owner := range o.byTraffic(users) {
			if !o.evac[s.Name] && sum >= excess {
				break
			}
			if h := o.held(owner); h != "" {
				why[owner] = h
				continue
			}
			taken, sum, n = append(taken, owner), sum+o.t[owner], n+1
			from[owner] = s.Name
		}
		if excess > 0 {
			res.overs[s.Name] = n
		}
	}
	var moving []string
	for _, owner := range taken {
		if o.choose(owner, from[owner], want, why) {
			moving = append(moving, owner)
		}
	}
	return moving
}

// choose applies the five factors; true if the owner is to be moved.
func (o *oracle) choose(owner, from string, want, why map[string]string) bool {
	var others, open []weight
	for _, w := range o.weights(owner) {
		if w.allowed && w.site != from && !o.isRefused(owner, w.site) {
			w.expected = o.expected[w.site]
			others = append(others, w)
			if o.room(w.site)-w.expected >= o.t[owner] {
				open = append(open, w)
			}
		}
	}
	o.expected[from] -= o.t[owner]
	if len(open) == 0 {
		want[owner], why[owner] = o.site[owner], "NoRoom"
		if len(others) == 0 {
			why[owner] = "NoAllowedSite"
		}
		o.expected[o.site[owner]] += o.t[owner]
		return false
	}
	best := slices.MinFunc(o.ties(open), func(a, b weight) int { return cmp.Compare(a.expected, b.expected) })
	want[owner], why[owner] = best.site, ""
	o.expected[best.site] += o.t[owner]
	if best.site == o.site[owner] {
		why[owner] = "WithinCapacity"
		return false
	}
	return true
}

// issue applies freeze and limits, most important moves first, and gives
// versions.
func (o *oracle) issue(in oracleInput, want, why map[string]string, taken []string, res *result) {
	var others []string
	for owner := range o.owners {
		if want[owner] != "" && why[owner] == "" && want[owner] != o.site[owner] && !slices.Contains(taken, owner) {
			others = append(others, owner)
		}
	}
	moves, volume := int64(0), int64(0)
	var picks []string
	for _, owner := range append(taken, o.byTraffic(others)...) {
		switch {
		case in.frozen:
			why[owner] = "Frozen"
		case o.c.Limits.Moves > 0 && moves == int64(o.c.Limits.Moves):
			why[owner] = "MoveLimit"
		case o.c.Limits.Bytes > 0 && volume+o.stored[owner] > o.c.Limits.Bytes:
			why[owner] = "ByteLimit"
		default:
			moves, volume = moves+1, volume+o.stored[owner]
			picks = append(picks, owner)
			continue
		}
		o.expected[want[owner]] -= o.t[owner]
		o.expected[o.site[owner]] += o.t[owner]
	}
	for owner := range o.owners {
		switch w := why[owner]; w {
		case "Frozen", "MoveUnderWay", "Cooldown", "MoveLimit", "ByteLimit":
		default:
			if want[owner] != "" && !in.frozen {
				o.placed[owner] = true
			}
		}
		if w := why[owner]; w != "" && w != "WithinCapacity" && (w != "LocationUnknown" || o.seen[owner]) {
			res.why[w]++
		}
		if o.evac[o.site[owner]] {
			res.remains[o.site[owner]]++
		}
	}
	o.send(in, picks, want, res)
}

func (o *oracle) send(in oracleInput, picks []string, want map[string]string, res *result) {
	order := map[string]int{}
	for i, s := range o.c.Sites {
		order[s.Name] = i
	}
	slices.SortFunc(picks, func(a, b string) int {
		return cmp.Or(cmp.Compare(order[want[a]], order[want[b]]), cmp.Compare(a, b))
	})
	for _, owner := range picks {
		o.version[owner]++
		m := control.Move{Owner: owner, From: o.site[owner], To: want[owner], Version: o.version[owner], Bytes: o.stored[owner]}
		res.moves = append(res.moves, m)
		delete(o.refused, owner)
		if in.mode == control.Act {
			o.pending[owner], o.decided[owner] = m, o.now
		}
	}
}

// invert plans the inverse of moves decided after a time.
func (o *oracle) invert(in oracleInput, res *result) {
	back := map[string]string{}
	var picks []string
	for _, h := range o.history {
		if _, ok := back[h.owner]; h.window > in.rollback && !ok {
			back[h.owner] = h.from
		}
	}
	for owner, m := range o.pending {
		if _, ok := back[owner]; !ok && o.decided[owner] > in.rollback {
			back[owner] = m.From
		}
	}
	for owner, to := range back {
		_, under := o.pending[owner]
		switch {
		case o.pins[owner]:
			res.why["Pinned"]++
		case under:
			res.why["MoveUnderWay"]++
		case o.site[owner] == to:
		case !o.allowed(owner, to):
			res.why["NoAllowedSite"]++
		case o.isRefused(owner, to):
			res.why["Rejected"]++
		default:
			picks = append(picks, owner)
		}
	}
	o.send(in, picks, back, res)
}

func (o *oracle) apply(owner string, version uint64, status control.Status) {
	m, ok := o.pending[owner]
	if !ok || m.Version != version {
		return
	}
	delete(o.pending, owner)
	switch status {
	case control.Refused:
		o.refused[owner] = m
	case control.Done:
		o.site[owner], o.changed[owner] = m.To, o.now
		o.history = append(o.history, oracleMove{o.decided[owner], owner, m.From, m.To})
	}
}
