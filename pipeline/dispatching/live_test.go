package dispatching

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"penstock/consumers/executor/dispatcher"
	"penstock/producers/entry"
	"penstock/producers/entry/upstream"
	"penstock/schemas/control"
)

// load is clients that ask without a pause.
type load struct {
	t        testing.TB
	stop     chan struct{}
	all      sync.WaitGroup
	answered atomic.Int64
	failed   atomic.Int64
	more     chan struct{} // told of answers
}

func run(t testing.TB, clients int, points ...*point) *load {
	l := &load{t: t, stop: make(chan struct{}), more: make(chan struct{}, 1)}
	transport := &http.Transport{MaxIdleConnsPerHost: clients}
	for i := range clients {
		url := points[i%len(points)].url
		l.all.Go(func() {
			c := &http.Client{Transport: transport, Timeout: 20 * time.Second}
			for n := 0; ; n++ {
				select {
				case <-l.stop:
					return
				default:
				}
				l.ask(c, fmt.Sprintf("%s/page/%d", url, n%7))
			}
		})
	}
	t.Cleanup(func() {
		l.end()
		transport.CloseIdleConnections()
	})
	return l
}

func (l *load) ask(c *http.Client, url string) {
	resp, err := c.Get(url)
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			err = fmt.Errorf("status %d", resp.StatusCode)
		}
	}
	if err != nil {
		l.t.Log(err)
		l.failed.Add(1)
	}
	l.answered.Add(1)
	select {
	case l.more <- struct{}{}:
	default:
	}
}

func (l *load) end() {
	select {
	case <-l.stop:
	default:
		close(l.stop)
	}
	l.all.Wait()
}

// until waits until something holds, which is looked at after each answer.
func (l *load) until(what string, holds func() bool) {
	l.t.Helper()
	late := time.After(30 * time.Second)
	for !holds() {
		select {
		case <-l.more:
		case <-late:
			l.t.Fatalf("%s did not come: %d answered", what, l.answered.Load())
		}
	}
}

// next waits for so many more answers.
func (l *load) next(n int64) {
	l.t.Helper()
	until := l.answered.Load() + n
	l.until(fmt.Sprint(n, " answers"), func() bool { return l.answered.Load() >= until })
}

// Three entry points on one pool: one server becomes 10 times as slow, one is killed, one
// is added. No request fails, no server has more than M, the slow one's share falls, and
// the new one ramps (P30, P31, P38).
func TestLivePool(t *testing.T) {
	t.Parallel()
	const m, points = 6, 3
	a, b, slow, added := start(t, 20*time.Millisecond), start(t, 20*time.Millisecond), start(t, 20*time.Millisecond), start(t, 20*time.Millisecond)
	machines := []*machine{a, b, slow, added}
	var all []*point
	tables := func(epoch uint64, on, off []string) {
		for _, p := range all {
			if err := p.Site().Put(&control.ServersTable{On: on, Off: off, ZoneWeights: map[string]float64{"z": 1}}, epoch, time.Time{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range points {
		all = append(all, open(t, func(o *dispatcher.Options, _ *upstream.Options, _ *entry.Options) {
			o.InService, o.Shares, o.Ramp = m, dispatcher.Static{Of: points, Rank: i}, 2*time.Second
		}, machines...))
	}
	tables(1, []string{a.name, b.name, slow.name}, []string{added.name})
	l := run(t, 36, all...)
	l.next(300)
	if added.done.Load() > 0 {
		t.Errorf("the server that is off got %d requests", added.done.Load())
	}

	slow.takes.Store(int64(200 * time.Millisecond))
	l.next(400)
	before, sum := slow.done.Load(), l.answered.Load()
	l.next(400)
	share := float64(slow.done.Load()-before) / float64(l.answered.Load()-sum)
	t.Logf("share of the slow server: %.3f", share)
	if share > 0.2 {
		t.Errorf("the slow server has %.2f of the requests", share)
	}

	b.CloseClientConnections()
	b.Close()
	l.next(300)
	for _, p := range all {
		for _, s := range p.Site().State().Zones[0].Servers {
			if s.Name == b.name && (s.State != dispatcher.StateUnusable || s.Queued > 0) {
				t.Errorf("of the killed server it is thought %+v", s)
			}
		}
	}

	tables(2, []string{a.name, b.name, slow.name, added.name}, nil)
	before, sum = 0, l.answered.Load()
	l.until("a request of the new server", func() bool { return added.done.Load() > 0 })
	l.next(100)
	share = float64(added.done.Load()-before) / float64(l.answered.Load()-sum)
	t.Logf("share of the new server at first: %.3f", share)
	if share > 0.5 {
		t.Errorf("the new server has %.2f of the requests at first", share)
	}
	l.until("as many requests of the new server", func() bool { return added.done.Load() > 200 })

	tables(3, []string{slow.name, added.name}, []string{a.name, b.name})
	l.until("the end of what ran", func() bool { return a.in.Load() == 0 })
	before = a.done.Load()
	l.next(100)
	if a.done.Load() != before {
		t.Errorf("a drained server got %d requests", a.done.Load()-before)
	}
	l.end()
	if n := l.failed.Load(); n > 0 {
		t.Errorf("%d of %d requests failed", n, l.answered.Load())
	}
	for _, x := range machines {
		if x.most.Load() > m {
			t.Errorf("%s had %d requests at once", x.name, x.most.Load())
		}
	}
	for _, p := range all {
		st := p.Site().State()
		if c := st.Counts; c.Arrived != c.Started || c.Started != c.Answered+c.Failed+c.Gone || st.Zones[0].Requests != 0 {
			t.Errorf("counted %+v, %d are there", c, st.Zones[0].Requests)
		}
	}
}
