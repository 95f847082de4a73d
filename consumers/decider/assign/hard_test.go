package assign

import "math"

// hard is an instance of any size that needs no memory but its loads: costs like
// weights of distance, a fee for leaving the site where an item is, loads with a
// heavy tail, total load at 90 % of all room, and five sites that have room for
// three quarters of what least costs ask of them. It has more than five sites.
func hard(items, sites, workers int) *Problem {
	p := &Problem{Sites: sites, Load: make([]int64, items), Workers: workers}
	var total int64
	for i := range p.Load {
		p.Load[i] = 1000 + int64(1000/math.Pow(1-chance(uint64(i)<<1|1), 0.7))
		total += p.Load[i]
	}
	p.Overload = 100e9 * float64(items) / float64(total)
	at := make([][2]float64, sites) // on a spiral
	for j := range at {
		turn, out := math.Sincos(float64(j))
		at[j] = [2]float64{0.5 + 0.4*turn*float64(j)/float64(sites), 0.5 + 0.4*out*float64(j)/float64(sites)}
	}
	p.Rows = func(_, lo, hi int, out []int64) {
		for i := lo; i < hi; i++ {
			h := hash(uint64(i) * 31)
			x, y := float64(h&0xffff)/0x10000, float64(h>>16&0xffff)/0x10000
			row := out[(i-lo)*sites : (i-lo+1)*sites]
			for j := range row {
				dx, dy := x-at[j][0], y-at[j][1]
				row[j] = 2e7 + int64(5e8*(dx*dx+dy*dy))
			}
			row[int(h>>32)%sites] -= 2e7
		}
	}
	p.Room = hardRoom(p, total)
	return p
}

// hardRoom gives the five sites that are asked for most three quarters of that,
// and the others what makes up the total, by what is asked of them.
func hardRoom(p *Problem, total int64) []int64 {
	asked := make([]int64, p.Sites)
	out := make([]int64, p.Sites)
	for i, w := range p.Load {
		p.Rows(0, i, i+1, out)
		asked[least(out)] += w
	}
	room := make([]int64, p.Sites)
	rest, others := float64(total)/0.9, float64(total)
	for range 5 {
		most := -1
		for j, v := range asked {
			if room[j] == 0 && (most < 0 || v > asked[most]) {
				most = j
			}
		}
		room[most] = asked[most] * 3 / 4
		rest -= float64(room[most])
		others -= float64(asked[most])
	}
	for j, v := range asked {
		if room[j] == 0 {
			room[j] = int64(rest * float64(v) / max(others, 1))
		}
	}
	return room
}
