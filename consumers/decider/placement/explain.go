package placement

import (
	"time"
)

// Explanation says why an owner's data is where it is. Weights are of now, all
// that was learned included; traffic and sites' figures are of the last window
// that was planned.
type Explanation struct {
	Owner string `json:"owner"`
	// Site is where the data is, "" if that isn't known; Source how it is known:
	// imported, seen (served most of its first requests) or moved.
	Site    string `json:"site,omitempty"`
	Source  string `json:"source,omitempty"`
	Version uint64 `json:"version"`
	Pinned  bool   `json:"pinned,omitempty"`
	// MovingTo is the destination of a move under way.
	MovingTo string `json:"moving_to,omitempty"`
	Stored   int64  `json:"stored_bytes"`
	Traffic  int64  `json:"traffic_bytes"`
	Place    *Place `json:"place,omitempty"`
	// Friends are users with a social level, Located those whose place is known.
	Friends int64      `json:"friends"`
	Located int64      `json:"located_friends"`
	LMatch  string     `json:"l_match,omitempty"`
	Sites   []SiteView `json:"sites"`
	// Window is the end of the last planned window, Case that of the last
	// decided one.
	Window   *time.Time `json:"window,omitempty"`
	Case     string     `json:"case,omitempty"`
	LastMove *MoveView  `json:"last_move,omitempty"`
	// Stays is why the last plan left the data where it is, "" if it moved it.
	Stays         string     `json:"stays,omitempty"`
	CooldownUntil *time.Time `json:"cooldown_until,omitempty"`
	// Failures are moves in a row that failed or expired; HeldUntil is
	// the end of the last window in which the owner is not moved for them.
	Failures  int        `json:"failures,omitempty"`
	HeldUntil *time.Time `json:"held_until,omitempty"`
}

// Place is where an owner is as a user.
type Place struct {
	Kind string  `json:"kind"` // latest or mean
	Lat  float64 `json:"lat"`
	Lon  float64 `json:"lon"`
	// At is when it was seen there, of latest.
	At *time.Time `json:"at,omitempty"`
}

// SiteView is what speaks for and against a site.
type SiteView struct {
	Site    string `json:"site"`
	Allowed bool   `json:"allowed"` // by residency, and not being emptied
	// DistanceKm is from the owner's own place, absent without one.
	DistanceKm *float64 `json:"distance_km,omitempty"`
	NDW        float64  `json:"ndw"`
	// SW is Σ SL·d in km, NSW the same normalised, Weight is E.
	SW       float64 `json:"sw"`
	NSW      float64 `json:"nsw"`
	Weight   float64 `json:"weight"`
	Capacity int64   `json:"capacity"`
	Limit    int64   `json:"limit"` // capacity × (1 − headroom)
	Observed int64   `json:"observed"`
	Expected int64   `json:"expected"`
	// Terms are those of the objective; of policy optimal.
	Terms *Terms `json:"objective,omitempty"`
}

// Terms are what the objective says of an owner at a site, in units of weight:
// the plan gives it the site of the least Cost, as far as sites can be filled.
type Terms struct {
	// Moving is what it costs to move the owner there, margin included.
	Moving float64 `json:"moving"`
	// Price is what the site's capacity was worth in the last plan, for as much
	// traffic as the owner has.
	Price float64 `json:"price"`
	Cost  float64 `json:"cost"` // Weight + Moving + Price
}

// MoveView is the last decided move.
type MoveView struct {
	Window  time.Time  `json:"window"` // its end
	From    string     `json:"from"`
	To      string     `json:"to"`
	Version uint64     `json:"version"`
	Bytes   int64      `json:"bytes"`
	Reason  string     `json:"reason"`
	Status  string     `json:"status"`
	Changed *time.Time `json:"changed,omitempty"` // when data last really moved
}

func instant(us int64) *time.Time {
	if us == noTime {
		return nil
	}
	at := time.UnixMicro(us).UTC()
	return &at
}

// Explain returns an Explanation, false for an id that was never seen.
func (t *Policy) Explain(owner string) (any, bool) {
	t.takeImports()
	s := t.state
	id := s.names.find(owner)
	if id < 0 {
		return nil, false
	}
	e := Explanation{
		Owner: owner, Site: s.siteName(s.site[id]), Pinned: s.flags[id]&pinned != 0, MovingTo: s.siteName(s.pending(id)),
		Stored: s.stored[id], Traffic: s.traffic[id], Window: instant(s.planned), Case: caseNames[s.lastCase],
	}
	switch {
	case e.Site == "":
	case s.flags[id]&moved != 0:
		e.Source = "moved"
	case s.flags[id]&imported != 0:
		e.Source = "imported"
	default:
		e.Source = "seen"
	}
	if why := s.why[id]; stays[why] || why == WithinCapacity {
		e.Stays = why.String()
	}
	t.explainPlace(id, &e)
	t.explainSites(id, &e)
	t.explainMove(id, &e)
	return e, true
}

func (t *Policy) explainPlace(id int32, e *Explanation) {
	v, ok := t.state.place(id, t.mean)
	if !ok {
		return
	}
	lat, lon, _ := v.Degrees()
	e.Place = &Place{Kind: t.config.Place, Lat: lat, Lon: lon}
	if !t.mean {
		e.Place.Lat, e.Place.Lon = float64(t.state.lat[id]), float64(t.state.lon[id])
		e.Place.At = instant(t.state.at[id])
	}
}

func (t *Policy) explainSites(id int32, e *Explanation) {
	s := t.state
	w := newWeights(len(t.config.Sites))
	t.weigh(id, w)
	lo, hi := s.social.of(id)
	e.Friends, e.Located = hi-lo, w.friends
	open := t.candidates(id, nil)
	if left := t.nearest(t.candidates(id, nil), w); len(left) > 0 {
		e.LMatch = t.config.Sites[left[0]].Name
	}
	for j, site := range t.config.Sites {
		v := SiteView{
			Site: site.Name, NDW: float64(w.ndw[j]) / unit,
			SW: w.social[j], NSW: float64(w.nsw[j]) / unit, Weight: float64(w.sum[j]) / unit,
			Capacity: site.Capacity, Limit: t.limit[j+1], Observed: s.observed[j+1], Expected: s.expected[j+1],
		}
		if w.placed {
			v.DistanceKm = &w.km[j]
		}
		for _, o := range open {
			v.Allowed = v.Allowed || o == j
		}
		if t.config.Policy == Optimal {
			v.Terms = t.terms(id, j, v.Weight)
		}
		e.Sites = append(e.Sites, v)
	}
}

// terms are the objective's for an owner at a site.
func (t *Policy) terms(id int32, j int, weight float64) *Terms {
	s := t.state
	at := s.standing(id)
	out := &Terms{Price: s.prices[j+1] * float64(s.traffic[id])}
	if at > 0 && int(at) <= len(t.config.Sites) && int(at) != j+1 {
		margin := s.flags[id]&matched != 0 && !t.evacuated[at-1]
		out.Moving = float64(t.movingCost(s.stored[id], at, margin)) / unit
	}
	out.Cost = weight + out.Moving + out.Price
	return out
}

func (t *Policy) explainMove(id int32, e *Explanation) {
	s := t.state
	if s.move[id] < 0 {
		return
	}
	m := s.moves[s.move[id]]
	e.Version = m.version
	if m.changed != noTime && s.now < m.changed+t.config.Cooldown.Microseconds() {
		e.CooldownUntil = instant(m.changed + t.config.Cooldown.Microseconds())
	}
	if held := m.heldUntil(&t.config); m.fails > 0 && s.now < held {
		e.HeldUntil = instant(held)
	}
	e.Failures = int(m.fails)
	if m.status == 0 {
		return
	}
	e.LastMove = &MoveView{
		Window: *instant(m.window), From: s.siteName(m.from), To: s.siteName(m.to), Version: m.version, Bytes: m.bytes,
		Reason: m.code.String(), Status: statusNames[m.status], Changed: instant(m.changed),
	}
}
