package claims

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"pgregory.net/rapid"

	"penstock/infra/clock"
)

// model is a bus and several dispatchers that share servers over it. One thing happens at a
// time; a round is two of them, the reading and the writing, so that any number of others'
// may come between.
type model struct {
	t       *rapid.T
	rnd     *rand.Rand
	now     time.Duration // by the server's clock
	servers []Server
	all     []*member
	names   int
	log     []string
	wild    float64 // chance of a dispatcher to go on before its time, at each step
	ends    float64 // chance of a request to end, at each step

	value  []byte
	number uint64
	writes uint64
	at     time.Duration
	away   bool
}

// member is one dispatcher.
type member struct {
	m       *model
	c       *Claims
	name    string
	inUse   map[string]int
	plan    *plan // begun and not finished
	worked  time.Duration
	settled bool
	again   bool // another's write came first
	cut     bool // cannot reach the bus alone
	counted bool // the promise holds for it
	back    bool // has written since it was cut off
}

var errAway = errors.New("the bus is away")

// member is a store: the model's key as it reaches it.
func (d *member) reach() error {
	if d.m.away || d.cut {
		return errAway
	}
	if d.m.number > 0 && d.m.now-d.m.at > ttl { // the bucket forgets it
		d.m.value, d.m.number = nil, 0
	}
	return nil
}

func (d *member) read(context.Context) (revision, error) {
	if err := d.reach(); err != nil || d.m.number == 0 {
		return revision{}, err
	}
	return read(d.m.value, d.m.number, int64(d.m.at))
}

func (d *member) write(_ context.Context, over uint64, b book) error {
	if err := d.reach(); err != nil {
		return err
	}
	if over != d.m.number {
		return errConflict
	}
	for _, s := range d.m.servers {
		sum := 0
		for _, o := range b.Dispatchers {
			sum += o.Servers[s.Name].Claim
		}
		if sum > s.M {
			d.m.fail("%s: %d are claimed, of %d", s.Name, sum, s.M)
		}
	}
	value, err := json.Marshal(b)
	if err != nil {
		return err
	}
	d.m.value, d.m.at = value, d.m.now
	d.m.writes++
	d.m.number = d.m.writes
	return nil
}

func (d *member) remove(_ context.Context, over uint64) error {
	if err := d.reach(); err != nil {
		return err
	}
	if over != d.m.number {
		return errConflict
	}
	d.m.value, d.m.number = nil, 0
	return nil
}

func newModel(t *rapid.T, servers []Server) *model {
	return &model{t: t, rnd: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)), servers: servers, now: time.Hour, ends: 0.1}
}

func (m *model) note(format string, args ...any) {
	m.log = append(m.log[max(0, len(m.log)-60):], fmt.Sprintf("%v ", m.now-time.Hour)+fmt.Sprintf(format, args...))
}

func (m *model) join() {
	m.names++
	d := &member{m: m, name: fmt.Sprint("d", m.names), inUse: map[string]int{}, worked: -time.Hour, counted: true}
	o := Options{Name: d.name, Site: "s", Clock: clock.NewManual(time.Unix(0, 0)), Logger: zerolog.Nop(), Grace: 2 * time.Second, Every: time.Second}
	d.c = newClaims(o, d)
	d.c.Observe(func(fn func(zone, server string, inService, queued int, potential float64)) {
		for server, n := range d.inUse {
			fn("z", server, n, 0, 0)
		}
	}, nil)
	if err := d.c.SetServers(m.servers); err != nil {
		m.t.Fatal(err)
	}
	m.all = append(m.all, d)
	m.note("%s joins", d.name)
}

// leave has a dispatcher end its requests and take its row out, or die as it is.
func (m *model) leave(d *member, dies bool) {
	m.all = slices.DeleteFunc(m.all, func(o *member) bool { return o == d })
	m.note("%s leaves, dies: %v", d.name, dies)
	if !dies {
		d.inUse = map[string]int{}
		d.c.leave(context.Background())
	}
}

// half does the next half of a dispatcher's round.
func (d *member) half() {
	ctx := context.Background()
	d.worked = d.m.now
	if d.plan == nil {
		p, err := d.c.begin(ctx)
		d.settled, d.again = false, false
		if err != nil {
			return
		}
		d.plan = &p
		return
	}
	p := d.plan
	d.plan = nil
	err := d.c.finish(ctx, p)
	d.settled, d.again = err == nil && p.settled(), errors.Is(err, errConflict)
	d.back = d.back || err == nil
	d.m.note("%s wrote, rank %d, limits %v: %v", d.name, p.rank, d.c.State().Limits, err)
}

// within reports whether it has no more in use than its limits.
func (d *member) within() bool {
	for server, n := range d.inUse {
		if n > d.c.Share(server, 1<<30) {
			return false
		}
	}
	return true
}

// due is when it will go on: soon within a round or if not settled, as Run does.
func (d *member) due() time.Duration {
	switch {
	case d.plan != nil || d.again:
		return d.worked + 3*time.Millisecond
	case !d.settled:
		return d.worked + 250*time.Millisecond
	}
	return d.worked + time.Second
}

// step lets a little time pass; requests begin and end, and some dispatcher goes on.
func (m *model) step(load float64) {
	m.now += time.Duration(1 + m.rnd.Int64N(int64(40*time.Millisecond)))
	for _, d := range m.all {
		for _, s := range m.servers {
			for d.inUse[s.Name] < d.c.Share(s.Name, s.M) && m.rnd.Float64() < load {
				d.inUse[s.Name]++
			}
			for range d.inUse[s.Name] {
				if m.rnd.Float64() < m.ends {
					d.inUse[s.Name]--
				}
			}
		}
		d.counted = d.counted || d.back && d.within()
	}
	for range m.all {
		d := m.all[m.rnd.IntN(len(m.all))]
		if m.rnd.Float64() < m.wild {
			d.half()
			m.check()
		}
	}
	for _, d := range slices.Clone(m.all) {
		if d.due() <= m.now {
			d.half()
			m.check()
		}
	}
}

// check is the promise: neither what dispatchers may begin nor what they have in service is
// above M, and claims that are written aren't either.
func (m *model) check() {
	for _, s := range m.servers {
		sum := 0
		for _, d := range m.all {
			if d.counted {
				sum += max(d.c.Share(s.Name, 1<<30), d.inUse[s.Name])
			}
		}
		if sum > s.M {
			m.fail("%s: %d may be in service, of %d", s.Name, sum, s.M)
		}
	}
}

func (m *model) fail(format string, args ...any) {
	for _, l := range m.log {
		m.t.Log(l)
	}
	for _, d := range m.all {
		m.t.Logf("%s: limits %v, in use %v, cut %v, counted %v", d.name, d.c.State().Limits, d.inUse, d.cut, d.counted)
	}
	m.t.Fatalf("%v "+format, append([]any{m.now - time.Hour}, args...)...)
}

// run goes on for a time.
func (m *model) run(d time.Duration, load float64) {
	for end := m.now + d; m.now < end; {
		m.step(load)
	}
}

func drawServers(t *rapid.T) []Server {
	var servers []Server
	for i := range rapid.IntRange(1, 5).Draw(t, "servers") {
		servers = append(servers, Server{Name: fmt.Sprint("s", i), Zone: "z", M: rapid.IntRange(1, 9).Draw(t, "M")})
	}
	return servers
}

// TestMIsNeverExceeded draws what may happen to dispatchers on one pool: they join, die and
// leave, one or all lose the bus for a while, and the bus comes back without its memory.
// Throughout, M is kept; and when nothing happens any more everyone soon has a fair share.
func TestMIsNeverExceeded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t, drawServers(t))
		m.wild, m.ends = 0.05, 0.02
		m.join()
		for range rapid.IntRange(1, 6).Draw(t, "events") {
			if len(m.all) == 0 {
				m.join()
			}
			d := m.all[m.rnd.IntN(len(m.all))]
			switch rapid.SampledFrom([]string{"join", "join", "die", "leave", "cut", "outage", "restart"}).Draw(t, "event") {
			case "join":
				if len(m.all) < 6 {
					m.join()
				}
			case "die":
				m.leave(d, true)
			case "leave":
				m.leave(d, false)
			case "cut":
				d.cut, d.counted, d.back = true, false, false
				m.note("%s is cut off", d.name)
				m.run(time.Duration(m.rnd.Int64N(int64(8*time.Second))), 0.3)
				d.cut = false
				m.note("%s is back", d.name)
				m.run(500*time.Millisecond, 0.3) // before anything else happens to the bus
			case "outage":
				m.away = true
				m.note("outage")
				m.run(time.Duration(m.rnd.Int64N(int64(8*time.Second))), 0.3)
				m.away = false
				m.note("the bus is back")
			case "restart":
				m.away = true
				m.note("restart")
				m.run(time.Duration(m.rnd.Int64N(int64(3*time.Second))), 0.3)
				m.value, m.number, m.away = nil, 0, false
				m.note("the bus is back, and empty")
			}
			m.run(time.Duration(m.rnd.Int64N(int64(4*time.Second))), 0.3)
		}
		for len(m.all) < 2 {
			m.join()
		}
		m.wild, m.ends = 0, 0.1
		m.run(10*time.Second, 0.05)
		m.fair()
	})
}

// fair fails unless all limits together are M, and totals differ by at most one.
func (m *model) fair() {
	places, least, most := 0, 1<<30, 0
	for _, s := range m.servers {
		places += s.M
		sum := 0
		for _, d := range m.all {
			sum += d.c.Share(s.Name, s.M)
		}
		if sum != s.M && places >= len(m.all) {
			m.fail("%s: %d of %d are shared out", s.Name, sum, s.M)
		}
	}
	for _, d := range m.all {
		total := 0
		for _, s := range m.servers {
			total += d.c.Share(s.Name, s.M)
		}
		least, most = min(least, total), max(most, total)
	}
	if places >= len(m.all) && (most-least > 1 || least == 0) {
		m.fail("of %d places one has %d and one %d", places, least, most)
	}
}

// TestFairWithinAFewRenewals: in a key that is there a dispatcher that joins has its share,
// and one that dies is made up for, within a few renewals, also while the others' places
// are all in use.
func TestFairWithinAFewRenewals(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t, drawServers(t))
		m.join()
		m.run(3*time.Second, 0.3)
		m.fair()
		for range rapid.IntRange(1, 4).Draw(t, "joins") {
			m.join()
		}
		m.run(3*time.Second, 0.3)
		m.fair()
		m.leave(m.all[0], false)
		m.run(3*time.Second, 0.3)
		m.fair()
		if len(m.all) > 1 {
			m.leave(m.all[0], true)
			m.run(ttl+3*time.Second, 0.3)
			m.fair()
		}
	})
}

// TestNobodyStarves: with fewer places at a server than dispatchers, but enough at all, each
// has some; with fewer at all each has one from time to time.
func TestNobodyStarves(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var servers []Server
		for i := range 6 {
			servers = append(servers, Server{Name: fmt.Sprint("s", i), M: 1})
		}
		m := newModel(t, servers[:rapid.IntRange(3, 6).Draw(t, "servers")])
		for range 3 {
			m.join()
		}
		m.run(5*time.Second, 0.3)
		m.fair()

		m = newModel(t, servers[:1])
		had := map[string]bool{}
		for range 3 {
			m.join()
		}
		for range 25 {
			m.run(time.Second, 0.3)
			for _, d := range m.all {
				had[d.name] = had[d.name] || d.c.Share("s0", 1) == 1
			}
		}
		if len(had) != 3 || !had["d1"] || !had["d2"] || !had["d3"] {
			m.fail("only %v ever had the one place", had)
		}
	})
}
