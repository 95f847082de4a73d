package split

// held says what kept a row from its target.
type held uint8

const (
	free     held = iota
	atTarget      // nothing to do
	inBand        // the change is not worth a command
	cooling       // shares that moved the other way not long ago
	limited       // the way is longer than a step
)

// damping is how far one window may go.
type damping struct {
	whole    int     // parts
	share    float64 // of the way, of a slow move
	up, down int     // greatest step in parts, slow and fast
	band     int     // parts
	now      int64
	cooldown int64 // µs
}

// step moves a row's parts towards its target and returns the new parts. A share
// that rose within the cooldown does not fall, and the other way round, so that
// nothing goes from A to B and back to A inside one. What some sites may not give
// or take, the others don't get: parts add up to the whole before and after.
//
// A fast row, one that leaves what got worse, goes all the way, by at most down.
// A slow one goes share of the way, by at most up, and by at least three quarters
// of up or all that is left, so that the way has an end.
func (d *damping) step(parts, target []int, up, down []int64, fast bool) ([]int, held) {
	whole := distance(parts, target)
	switch {
	case whole == 0:
		return parts, atTarget
	case whole <= d.band:
		return parts, inBand
	}
	var gives, takes int
	change := make([]int, len(parts))
	for n := range parts {
		c := target[n] - parts[n]
		if c > 0 && d.now-down[n] < d.cooldown || c < 0 && d.now-up[n] < d.cooldown {
			continue
		}
		if change[n] = c; c > 0 {
			takes += c
		} else {
			gives -= c
		}
	}
	can := min(gives, takes)
	if can == 0 {
		return parts, cooling
	}
	most := can
	if fast {
		most = min(most, d.down)
	} else {
		least := min(can, d.up*3/4)
		most = min(max(int(float64(can)*d.share), least), d.up)
	}
	if most <= 0 {
		most = 1
	}
	out := append([]int(nil), parts...)
	for n, x := range scaledTo(change, 1, most) {
		out[n] += x
	}
	for n, x := range scaledTo(change, -1, most) {
		out[n] -= x
	}
	switch {
	case can < whole:
		return out, cooling
	case most < whole:
		return out, limited
	}
	return out, free
}

// scaledTo shares out parts over the changes of one sign, in proportion. No site
// gets more than its own change.
func scaledTo(change []int, sign, parts int) []int {
	out := make([]int, len(change))
	sum := 0
	for _, c := range change {
		sum += max(0, sign*c)
	}
	left := parts
	for n, c := range change {
		out[n] = max(0, sign*c) * parts / sum
		left -= out[n]
	}
	for n := 0; left > 0; n = (n + 1) % len(change) {
		if out[n] < sign*change[n] {
			out[n]++
			left--
		}
	}
	return out
}
