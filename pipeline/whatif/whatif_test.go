package whatif

import (
	"math"
	"testing"
	"time"

	"penstock/schemas/window"
)

const hour = int64(time.Hour / time.Microsecond)

// east and west are 2,000 km apart, in round figures, on the equator.
var twoSites = []Site{{Name: "east", Lon: 0}, {Name: "west", Lon: 18}}

// rtt is the round trip by the formula over degrees of the equator, in µs.
func rtt(degrees float64) int64 {
	return int64(math.Round((0.02*degrees*math.Pi/180*6371 + 5) * 1000))
}

// builder makes windows out of requests.
type builder struct {
	w       Window
	places  map[string][2]float32
	traffic map[[2]string][5]int64
	asked   map[[2]string]int64
}

func newBuilder(n int) *builder {
	return &builder{
		w:       Window{Start: int64(n) * hour, End: int64(n+1) * hour, Tables: map[string]*window.Table{}},
		places:  map[string][2]float32{},
		traffic: map[[2]string][5]int64{}, asked: map[[2]string]int64{},
	}
}

func (b *builder) place(user string, lat, lon float32) *builder {
	b.places[user] = [2]float32{lat, lon}
	return b
}

func (b *builder) ask(user, owner, site string, requests, writes, bytes, written int64) *builder {
	k := [2]string{owner, site}
	v := b.traffic[k]
	b.traffic[k] = [5]int64{v[0] + requests, v[1] + requests - writes, v[2] + writes, v[3] + bytes, v[4] + written}
	if user != "" {
		b.asked[[2]string{user, owner}] += requests
	}
	return b
}

func (b *builder) window() Window {
	t, i, p := window.NewTable(window.Traffic), window.NewTable(window.Interactions), window.NewTable(window.Places)
	for k, v := range b.traffic {
		t.Append(b.w.Start, k[:], v[:])
	}
	for k, n := range b.asked {
		i.Append(b.w.Start, k[:], []int64{n})
	}
	for u, at := range b.places {
		p.Append(b.w.Start, []string{u}, []int64{b.w.Start + 1, window.FromFloat32(at[0]), window.FromFloat32(at[1]), 1, 0, 0, 0})
	}
	for _, t := range []*window.Table{t, i, p} {
		if t.Len() > 0 {
			b.w.Tables[t.Rollup.Name] = window.Merge(t.Rollup, t)
		}
	}
	return b.w
}

// TestFiguresByHand plays two windows whose figures can be told by hand.
func TestFiguresByHand(t *testing.T) {
	r := NewRecording(Options{Sites: twoSites})
	one := newBuilder(0).place("ann", 0, 1).place("bob", 0, 17).
		ask("ann", "ann", "east", 2, 2, 2000, 2000). // stands in the east
		ask("bob", "ann", "east", 6, 0, 6000, 0).
		ask("ghost", "ann", "east", 2, 0, 2000, 0). // has no place
		window()
	two := newBuilder(1).place("ann", 0, 16). // has moved house
							ask("ann", "ann", "west", 10, 0, 10_000, 0).window()
	frames := []*Frame{r.Frame(one), r.Frame(two)}
	play := Play{Capacity: []int64{4000, 4000}, Prices: func(from, _ int16) float64 { return float64(from + 1) }}

	played := map[string][]Measured{"as-it-was": NewPlayer(AsServed(), play).Frames(frames)}
	others := NewOthers(twoSites, false, play)
	for _, f := range frames {
		for i, m := range others.Step(f) {
			name := others.Strategies()[i].Name()
			played[name] = append(played[name], m)
		}
	}
	for _, c := range []struct {
		name    string
		traffic [2][]int64
		sum     [2]int64 // µs
		count   [2]int64
		waiting float64
		over    int
		moved   int64
		between int64
		usd     float64
	}{
		{
			name: "nearest-replica", traffic: [2][]int64{{2000, 6000}, {0, 10_000}},
			sum: [2]int64{8 * rtt(1), 10 * rtt(2)}, count: [2]int64{8, 10},
			waiting: 2000.0/6000 + 6000.0/10_000, over: 2, between: 2000, usd: 2000.0 / 1e9,
		},
		{
			name: "distance-only", traffic: [2][]int64{{10_000, 0}, {10_000, 0}},
			sum: [2]int64{2*rtt(1) + 6*rtt(17), 10 * rtt(16)}, count: [2]int64{8, 10},
			waiting: 2 * 6000.0 / 10_000, over: 2, moved: 2000, between: 2000, usd: 2000.0 / 1e9,
		},
		{
			name: "as-it-was", traffic: [2][]int64{{10_000, 0}, {0, 10_000}},
			sum: [2]int64{2*rtt(1) + 6*rtt(17), 10 * rtt(2)}, count: [2]int64{8, 10},
			waiting: 2 * 6000.0 / 10_000, over: 2, moved: 2000, between: 2000, usd: 2000.0 / 1e9,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := played[c.name]
			waiting, over, moved, between, usd := 0.0, 0, int64(0), int64(0), 0.0
			for i, m := range got {
				if m.Traffic[0] != c.traffic[i][0] || m.Traffic[1] != c.traffic[i][1] {
					t.Errorf("window %d: traffic %v, expected %v", i, m.Traffic, c.traffic[i])
				}
				if m.DelayUS != c.sum[i] || m.Located != c.count[i] {
					t.Errorf("window %d: %d µs of %d requests, expected %d of %d", i, m.DelayUS, m.Located, c.sum[i], c.count[i])
				}
				waiting, over, moved, between, usd = waiting+m.Waiting, over+m.Over, moved+m.MovedBytes, between+m.Between, usd+m.USD
			}
			if math.Abs(waiting-c.waiting) > 1e-12 || over != c.over || moved != c.moved || between != c.between || math.Abs(usd-c.usd) > 1e-15 {
				t.Errorf("W %v, %d over, %d B moved, %d B between, $%v; expected %+v", waiting, over, moved, between, usd, c)
			}
		})
	}
}
