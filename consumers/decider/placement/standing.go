package placement

// Standing is an owner whose data is at a site.
type Standing struct {
	Owner string `json:"owner"`
	// MovingTo is the destination of a move under way.
	MovingTo string `json:"moving_to,omitempty"`
	Pinned   bool   `json:"pinned,omitempty"`
	// Stays is why the last plan left the data where it is, "" if it moved it.
	Stays string `json:"stays,omitempty"`
}

// At returns the owners whose data is at a site, by owner (bytes).
func (t *Policy) At(site string) []Standing {
	t.takeImports()
	s := t.state
	var out []Standing
	for _, id := range s.names.sorted {
		if s.flags[id]&isOwner == 0 || s.site[id] == 0 || s.siteName(s.site[id]) != site {
			continue
		}
		x := Standing{Owner: string([]byte(s.names.at(id))), MovingTo: s.siteName(s.pending(id)), Pinned: s.flags[id]&pinned != 0}
		if why := s.why[id]; stays[why] || why == WithinCapacity {
			x.Stays = why.String()
		}
		out = append(out, x)
	}
	return out
}

// To returns the owners with a move under way to a site, by owner (bytes).
func (t *Policy) To(site string) []string {
	t.takeImports()
	s := t.state
	var out []string
	for _, id := range s.names.sorted {
		if to := s.pending(id); to != 0 && s.siteName(to) == site {
			out = append(out, string([]byte(s.names.at(id))))
		}
	}
	return out
}
