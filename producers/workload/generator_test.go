package workload

import (
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

	"penstock/schemas/event"
	"penstock/schemas/sphere"
)

var update = flag.Bool("update", false, "write the golden files anew")

const paperFile = "../../infra/examples/paper-day.yaml"

func paperDay(t testing.TB) Params {
	t.Helper()
	data, err := os.ReadFile(paperFile)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Decode(data, "paper-day.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// small is a day of few users whose rows fit a golden file.
func small(t testing.TB) Params {
	p := paperDay(t)
	p.Users, p.Friends.Degree.Most, p.Reads.PerWrite = 40, 20, 10
	p.Scale.Peak = 1_000_000
	p.Start = time.Date(2016, 9, 14, 8, 0, 0, 0, time.UTC)
	return p
}

func mustNew(t testing.TB, p Params) *Generator {
	t.Helper()
	g, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestGoldenRows(t *testing.T) {
	g := mustNew(t, small(t))
	var out strings.Builder
	digest := xxhash.New()
	var r event.Request
	n := 0
	for ; g.Next(&r) == nil; n++ {
		line := fmt.Sprintf("%d %s %s of %s at %.4f %.4f, %d B\n", r.Time, r.User, r.Op, r.Owner, r.Lat, r.Lon, r.Bytes)
		if n < 40 {
			out.WriteString(line)
		}
		_, _ = digest.WriteString(line)
	}
	fmt.Fprintf(&out, "… %d rows, digest %016x\n\n%s", n, digest.Sum64(), g.Plan())
	const file = "testdata/small.golden"
	if *update {
		if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if out.String() != string(want) {
		t.Errorf("the day has changed (-update writes it anew):\n%s", out.String())
	}
}

// day is what a whole pass over the paper's day says.
type dayCount struct {
	rows, reads, writes int64
	bytes               [][]int64 // by site and hour
	total               []int64
	owners              map[string]int64
	nearest             map[int]int // by the number of the user
}

func passOver(t *testing.T, p Params, g *Generator) *dayCount {
	t.Helper()
	c := &dayCount{
		bytes: make([][]int64, len(p.Scale.Sites)), total: make([]int64, p.Hours),
		owners: map[string]int64{}, nearest: map[int]int{},
	}
	for s := range c.bytes {
		c.bytes[s] = make([]int64, p.Hours)
	}
	var r event.Request
	last := p.Start.UnixMicro()
	sites := make([]int, p.Users) // 1 + nearest
	for {
		err := g.Next(&r)
		if errors.Is(err, io.EOF) {
			return c
		}
		if err != nil {
			t.Fatal(err)
		}
		if r.Time < last {
			t.Fatalf("row %d comes at %d, after one at %d", c.rows, r.Time, last)
		}
		last = r.Time
		c.rows++
		if r.Op == event.Write {
			c.writes++
			c.owners[r.Owner]++
		} else {
			c.reads++
		}
		u := number(r.User)
		if sites[u] == 0 {
			sites[u] = 1 + nearestOf(p.Scale.Sites, r.Lat, r.Lon)
			c.nearest[u] = sites[u] - 1
			checkPlace(t, p, &r)
		}
		s := sites[u] - 1
		h := (r.Time - p.Start.UnixMicro()) / hour
		c.bytes[s][h] += r.Bytes
		c.total[h] += r.Bytes
	}
}

// number is that of a user: u0042 is 42.
func number(user string) (n int) {
	for i := 1; i < len(user); i++ {
		n = 10*n + int(user[i]-'0')
	}
	return n
}

func nearestOf(sites []Site, lat, lon float32) int {
	best, km := 0, math.Inf(1)
	for i, s := range sites {
		if d := sphere.Km(s.Lat, s.Lon, float64(lat), float64(lon)); d < km {
			best, km = i, d
		}
	}
	return best
}

// checkPlace finds the metropolitan area of a user, and sees that no border is
// crossed: the 49th parallel, and the coasts roughly.
func checkPlace(t *testing.T, p Params, r *event.Request) {
	t.Helper()
	if err := r.Check(); err != nil {
		t.Fatal(err)
	}
	if r.Lat < 24.5 || r.Lat > 49 || r.Lon < -124.7 || r.Lon > -67 {
		t.Errorf("user %s is at %v %v, outside the contiguous United States", r.User, r.Lat, r.Lon)
	}
	for _, m := range metros {
		if sphere.Km(m.lat, m.lon, float64(r.Lat), float64(r.Lon)) <= p.Places.JitterKm*1.001 {
			return
		}
	}
	t.Errorf("user %s is at %v %v, near no metropolitan area", r.User, r.Lat, r.Lon)
}

func TestThePapersDayIsAsThePaperSays(t *testing.T) {
	p := paperDay(t)
	g := mustNew(t, p)
	pl := g.Plan()
	c := passOver(t, p, g)
	if c.rows != pl.Requests || c.writes != pl.Writes {
		t.Errorf("%d rows with %d writes, the plan says %d with %d", c.rows, c.writes, pl.Requests, pl.Writes)
	}
	if c.reads != 100*c.writes {
		t.Errorf("%d reads of %d writes, expected 100 times as many", c.reads, c.writes)
	}
	if c.rows < 3_000_000 || c.rows > 5_000_000 {
		t.Errorf("%d requests, expected about 4 million", c.rows)
	}
	if len(c.owners) < 2400 || len(c.nearest) < 2400 {
		t.Errorf("%d of the 2,500 users write and %d ask, expected nearly all", len(c.owners), len(c.nearest))
	}
	for s, site := range pl.Sites {
		most := 0
		for h, b := range c.bytes[s] {
			if b > c.bytes[s][most] {
				most = h
			}
			if off := math.Abs(float64(b) - site.Bytes[h]); off > 0.01*site.PeakBytes {
				t.Errorf("%s, hour %d: %d bytes, the plan says %.0f", site.Name, h, b, site.Bytes[h])
			}
		}
		if site.Name == "us-east" {
			if off := math.Abs(float64(c.bytes[s][most])/130e6 - 1); off > 0.01 {
				t.Errorf("the busiest hour of the East has %d bytes, expected 130 MB within 1 %%", c.bytes[s][most])
			}
		}
	}
	least, most := 0, 0
	for h, b := range c.total {
		if b < c.total[least] {
			least = h
		}
		if b > c.total[most] {
			most = h
		}
	}
	if utcTrough, utcPeak := (8+least)%24, (8+most)%24; utcTrough != 8 || utcPeak != 20 {
		t.Errorf("least at %d h and most at %d h, expected 8 h and 20 h", utcTrough, utcPeak)
	}
	// The main rise of the paper is from 10 to 19 h.
	if rise := c.total[19-8] - c.total[10-8]; 100*rise < 75*(c.total[most]-c.total[least]) {
		t.Errorf("%d bytes more at 19 h than at 10 h, expected most of the rise of %d", rise, c.total[most]-c.total[least])
	}
}

// The load wanders: the middle of the West's day is later than the East's.
func TestTheLoadWandersFromEastToWest(t *testing.T) {
	pl := mustNew(t, paperDay(t)).Plan()
	middle := func(site int) float64 {
		sum, weighted := 0.0, 0.0
		for h, b := range pl.Sites[site].Bytes {
			sum += b
			weighted += b * float64(h)
		}
		return weighted / sum
	}
	if east, west := middle(0), middle(2); west < east+0.5 {
		t.Errorf("the middle of the day is at %.2f h in the East and %.2f h in the West after the start", east, west)
	}
}

func TestSeedsDifferAndAgreeWithThemselves(t *testing.T) {
	rows := func(seed uint64) string {
		p := small(t)
		p.Seed = seed
		g := mustNew(t, p)
		d := xxhash.New()
		var r event.Request
		for g.Next(&r) == nil {
			_ = binary.Write(d, binary.LittleEndian, r.Time)
			_, _ = d.WriteString(r.User)
		}
		return fmt.Sprint(d.Sum64())
	}
	one := rows(1)
	if again := rows(1); again != one {
		t.Error("one seed gave two days")
	}
	if rows(2) == one {
		t.Error("two seeds gave one day")
	}
}

// Reads go to friends in proportion to the social level, and to the owner.
func TestReadersFollowTheSocialLevel(t *testing.T) {
	p := small(t)
	p.Reads.PerWrite, p.Scale.Peak = 400, 15_000_000
	g := mustNew(t, p)
	index := map[string]int32{}
	for u, n := range g.pop.names {
		index[n] = int32(u)
	}
	count, all := map[[2]int32]float64{}, map[int32]float64{}
	var r event.Request
	for g.Next(&r) == nil {
		if r.Op == event.Read {
			count[[2]int32{index[r.Owner], index[r.User]}]++
			all[index[r.Owner]]++
		}
	}
	for u, readers := range g.pop.readers {
		if readers[len(readers)-1] != int32(u) || g.pop.levels[u][len(readers)-1] != p.Reads.OwnShare {
			t.Fatalf("user %d reads %v of its own data, expected %v", u, g.pop.levels[u][len(readers)-1], p.Reads.OwnShare)
		}
		n := all[int32(u)]
		for i, v := range readers {
			want := g.pop.levels[u][i]
			sigma := math.Sqrt(want * (1 - want) / n)
			if got := count[[2]int32{int32(u), v}] / n; math.Abs(got-want) > 6*sigma {
				t.Errorf("user %d: %d does %.4f of %v reads, expected %.4f", u, v, got, n, want)
			}
			delete(count, [2]int32{int32(u), v})
		}
	}
	if len(count) > 0 {
		t.Errorf("%d pairs read without being friends", len(count))
	}
}

func TestReadsComeSecondsToMinutesAfterTheWrite(t *testing.T) {
	p := small(t)
	l := newDelays(p.Reads.After)
	rnd := newSource(3, 99)
	const n = 200_000
	var below [3]float64
	bounds := [3]float64{3e6, 25e6, 200e6}
	for range n {
		d := float64(l.draw(rnd.pcg.Uint64()))
		if d < l.least || d > l.most {
			t.Fatalf("a read comes %v µs after the write", d)
		}
		for i, b := range bounds {
			if d < b {
				below[i]++
			}
		}
	}
	for i, b := range bounds {
		if want := l.within(b); math.Abs(below[i]/n-want) > 0.005 {
			t.Errorf("%.4f of the reads within %v µs, expected %.4f", below[i]/n, b, want)
		}
	}
}

func BenchmarkNext(b *testing.B) {
	g := mustNew(b, paperDay(b))
	p := paperDay(b)
	var r event.Request
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if g.Next(&r) != nil {
			b.StopTimer()
			g = mustNew(b, p)
			b.StartTimer()
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}
