package bench

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"penstock/pipeline/config"
	"penstock/producers/replay/route"
	"penstock/producers/workload"
	"penstock/schemas/event"
)

const examples = "../../infra/examples/"

// rows are requests made beforehand, small and without pointers, so that they
// neither fill the memory nor keep the collector busy while something else is
// measured.
type rows struct {
	people    names
	sites     []string
	list      []row
	component string
}

// names are texts by number, side by side in one.
type names struct {
	text string
	ends []uint32
}

func (n *names) add(s string) int32 {
	n.text += s
	n.ends = append(n.ends, uint32(len(n.text)))
	return int32(len(n.ends) - 1)
}

func (n *names) at(i int32) string {
	from := uint32(0)
	if i > 0 {
		from = n.ends[i-1]
	}
	return n.text[from:n.ends[i]]
}

type row struct {
	time        int64
	user, owner int32
	lat, lon    float32
	bytes       int32
	wait        int32 // and the others follow from it; below 0 for none
	site        uint8
	op          event.Op
}

// fill sets r to row i, all of its fields.
func (s *rows) fill(r *event.Request, i int) {
	x := &s.list[i]
	*r = blank
	r.Time, r.Op, r.Bytes, r.Lat, r.Lon = x.time, x.op, int64(x.bytes), x.lat, x.lon
	r.User, r.Owner, r.ToSite = s.people.at(x.user), s.people.at(x.owner), s.sites[x.site]
	r.ToComponent, r.Status = s.component, 200
	if x.wait >= 0 {
		r.Wait, r.Service, r.Network = int64(x.wait), 1000+int64(x.wait)*7, 5000+int64(x.wait)*31
	}
}

var blank = event.NewRequest(0)

// last is the time of the last row.
func (s *rows) last() int64 { return s.list[len(s.list)-1].time }

// paperDay returns the first rows of the paper's day, each served where the
// owner's data is, as a replay sends them.
func paperDay(t testing.TB, most int) *rows {
	t.Helper()
	data, err := os.ReadFile(examples + "paper-day.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p, err := workload.Decode(data, "paper-day.yaml")
	if err != nil {
		t.Fatal(err)
	}
	g, err := workload.New(p)
	if err != nil {
		t.Fatal(err)
	}
	places := paperSites(t)
	table, err := route.New(route.Options{Sites: places})
	if err != nil {
		t.Fatal(err)
	}
	s := &rows{component: workload.Component}
	for _, p := range places {
		s.sites = append(s.sites, p.Name)
	}
	ids := map[string]int32{}
	id := func(name string) int32 {
		n, ok := ids[name]
		if !ok {
			n = s.people.add(name)
			ids[name] = n
		}
		return n
	}
	var r event.Request
	for len(s.list) < most {
		if err := g.Next(&r); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		table.Route(&r)
		s.list = append(s.list, row{
			time: r.Time, user: id(r.User), owner: id(r.Owner), lat: r.Lat, lon: r.Lon, bytes: int32(r.Bytes), wait: -1,
			site: uint8(slices.Index(s.sites, r.ToSite)), op: r.Op,
		})
	}
	return s
}

func paperSites(t testing.TB) []route.Site {
	t.Helper()
	cfg := readConfig(t, examples+"paper.yaml")
	var out []route.Site
	for _, s := range cfg.Sites {
		out = append(out, route.Site{Name: s.Name, Lat: s.Lat, Lon: s.Lon})
	}
	return out
}

func readConfig(t testing.TB, name string) *config.Config {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Read(name, data)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// zipfRows returns rows of that many owners over an hour, users and owners drawn
// by Zipf's law with exponent 1, with delays.
func zipfRows(owners, n int) *rows {
	r := rand.New(rand.NewPCG(1, 1))
	sums := make([]float64, owners) // of 1/1 + 1/2 + …
	sum := 0.0
	for i := range sums {
		sum += 1 / float64(i+1)
		sums[i] = sum
	}
	draw := func() int32 {
		i, _ := slices.BinarySearch(sums, r.Float64()*sum)
		return int32(min(i, owners-1))
	}
	s := &rows{sites: []string{"us-east", "us-central", "us-west"}, component: "store"}
	var text []byte
	for i := range owners {
		// Ranks are spread over the names, as popularity is.
		text = fmt.Appendf(text, "user-%07d", uint64(i)*7919%uint64(owners))
		s.people.ends = append(s.people.ends, uint32(len(text)))
	}
	s.people.text = string(text)
	for i := range n {
		owner, user := draw(), draw()
		x := row{
			time: 1_700_000_000_000_000/3_600_000_000*3_600_000_000 + int64(float64(i)/float64(n)*3600e6), owner: owner, user: user,
			lat: float32(30 + user%20), lon: -float32(70 + user%50), bytes: 1000, wait: int32(r.ExpFloat64() * 500), site: uint8(owner % 3),
		}
		if i%101 == 0 {
			x.op = event.Write
		}
		s.list = append(s.list, x)
	}
	return s
}
