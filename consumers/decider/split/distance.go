package split

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// usPerKm is what a kilometre of the way there and back adds to a call, in µs:
// light in fibre, twice.
const usPerKm = 10.0

// earthKm is the radius of the earth (DESIGN §4.1).
const earthKm = 6371.0

// distances returns, by from site · sites + to site, the delay (µs) that is
// assumed where none was measured, and by site the sites in the order of it: its
// own first, ties in config order.
func (c *Config) distances() (base []float64, near [][]int) {
	m := len(c.Sites)
	base = make([]float64, m*m)
	index := map[string]int{}
	for i, a := range c.Sites {
		index[a.Name] = i
		for j, b := range c.Sites {
			base[i*m+j] = math.Round(usPerKm * greatCircle(a.Lat, a.Lon, b.Lat, b.Lon))
		}
	}
	for _, l := range c.Links {
		us := float64(l.Delay / time.Microsecond)
		base[index[l.From]*m+index[l.To]], base[index[l.To]*m+index[l.From]] = us, us
	}
	for i := range m {
		order := make([]int, m)
		for j := range order {
			order[j] = j
		}
		slices.SortStableFunc(order, func(a, b int) int {
			if (a == i) != (b == i) {
				if a == i {
					return -1
				}
				return 1
			}
			return cmp.Compare(base[i*m+a], base[i*m+b])
		})
		near = append(near, order)
	}
	return base, near
}

// greatCircle is in km.
func greatCircle(lat1, lon1, lat2, lon2 float64) float64 {
	rad := func(d float64) float64 { return d * math.Pi / 180 }
	s1, s2 := math.Sin(rad(lat2-lat1)/2), math.Sin(rad(lon2-lon1)/2)
	h := float64(s1*s1) + float64(math.Cos(rad(lat1))*math.Cos(rad(lat2)))*float64(s2*s2)
	return 2 * earthKm * math.Asin(math.Sqrt(min(1, h)))
}

// home is the site nearest to m at which a component is allowed, −1 if none.
func (t *Policy) home(m int, allowed []bool) int {
	for _, n := range t.near[m] {
		if allowed[n] {
			return n
		}
	}
	return -1
}
