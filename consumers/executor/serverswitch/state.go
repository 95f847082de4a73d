package serverswitch

import (
	"time"

	"penstock/schemas/subject"
)

// LeaseKey is the key of KV members that the switch of a site holds while it acts; what it
// says there is its SiteState.
func LeaseKey(site string) string { return "serverswitch." + subject.Encode(site) }

// SiteState is how a site stands, for those who look at it.
type SiteState struct {
	Site string `json:"site"`
	// Epoch of the last table; 0: none has come. Until is when its ttl is over, and Lapsed
	// that it is.
	Epoch  uint64    `json:"epoch"`
	Until  time.Time `json:"until,omitzero"`
	Lapsed bool      `json:"lapsed,omitempty"`
	// Settled is set when every server is as it is wanted, or has failed.
	Settled bool          `json:"settled"`
	Servers []ServerState `json:"servers"`
}

// ServerState is how a server stands: wanted beside observed.
type ServerState struct {
	Server string `json:"server"`
	Zone   string `json:"zone,omitempty"`
	// Backend is what turns it on and off.
	Backend string `json:"backend"`
	// Wanted is on, off, or empty: no table names it.
	Wanted string `json:"wanted,omitempty"`
	// Phase is what it is known to be, since when, and until when it is to be ready or
	// drained.
	Phase Phase     `json:"phase"`
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// Observed is what the backend said last: on, off or unseen.
	Observed string `json:"observed"`
	// Left is what its drain waits for.
	Left string `json:"left,omitempty"`
	// Tries that failed, with what, and when the next is due; Failed that they are enough for
	// the table to be answered failed.
	Tries  int       `json:"tries,omitempty"`
	Failed bool      `json:"failed,omitempty"`
	Fault  string    `json:"fault,omitempty"`
	Next   time.Time `json:"next,omitzero"`
}

// State returns how all sites stand, by name, with their servers in the order of the
// options.
func (w *Switch) State() []SiteState {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []SiteState
	for _, name := range w.siteNames() {
		s := w.sites[name]
		p := s.page
		at := SiteState{Site: name, Epoch: p.Epoch, Until: p.Until, Lapsed: p.Lapsed, Settled: s.judge().settled}
		for _, u := range s.units {
			at.Servers = append(at.Servers, s.state(u))
		}
		all = append(all, at)
	}
	return all
}

func (s *site) state(u *unit) ServerState {
	m := u.memo
	v := ServerState{
		Server: u.Name, Zone: u.Zone, Backend: u.Backend.Name(), Wanted: [...]string{"", "on", "off"}[s.wants[u.Name]],
		Phase: m.Phase, Since: m.Since, Until: m.Until, Observed: u.power.String(),
		Tries: m.Tries, Failed: s.failed(u), Fault: m.Fault,
	}
	switch m.Phase {
	case Draining:
		v.Left = u.detail
	case Starting, Stopping:
		v.Next = m.Next
	}
	return v
}
