package entry_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"penstock/infra/clock"
	"penstock/producers/entry"
)

// Between the old site's letting go and the new one's taking over nobody has the
// data. The clock is moved by hand.
func TestAnOwnerOnTheMoveIsWaitedFor(t *testing.T) {
	t.Parallel()
	manual := clock.NewManual(time.Date(2026, 5, 17, 10, 0, 0, 0, time.UTC))
	w := newWorld(t, func(_ string, o *entry.Options) { o.Clock = manual })
	w.stores["b"].moved["ada"] = word{"c", 9}
	w.points["a"].places.set("ada", "b", 8)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ask := func() <-chan answer {
		got := make(chan answer, 1)
		go func() { got <- get(t, w.points["a"].url+"/u/ada/x") }()
		return got
	}
	// c has not got it yet, and believes what it last heard.
	w.stores["c"].moved["ada"] = word{"b", 8}
	got := ask()
	for range 4 {
		if err := manual.Await(ctx, 1); err != nil {
			t.Fatal(err)
		}
		manual.Advance(30 * time.Millisecond)
	}
	if err := manual.Await(ctx, 1); err != nil {
		t.Fatal(err)
	}
	w.stores["c"].set(func() { w.stores["c"].has["ada"] = true })
	manual.Advance(time.Second - 200*time.Millisecond)
	if a := <-got; a.about() != "200 c v9 hops 1" {
		t.Errorf("got %s", a.about())
	}
	// It never gets it.
	w.stores["c"].set(func() { delete(w.stores["c"].has, "ada") })
	got = ask()
	var a answer
	for waiting := true; waiting; {
		select {
		case a = <-got:
			waiting = false
		default:
			if manual.Waiting() > 0 {
				manual.Advance(100 * time.Millisecond)
			}
			time.Sleep(time.Millisecond)
		}
	}
	if a.StatusCode != http.StatusServiceUnavailable || a.Header.Get("Retry-After") != "1" || a.body != "penstock: the data is being moved: try again\n" {
		t.Errorf("got %d %q", a.StatusCode, a.body)
	}
}

// gate is a Gate of one owner.
type gate struct {
	mu      sync.Mutex
	held    chan struct{}
	entered int
	inside  int
	before  func() // called by Enter; may be nil
}

func (g *gate) Enter(owner string) (leave func(), held <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.before != nil {
		g.before()
	}
	if g.held != nil && owner == "ada" {
		return nil, g.held
	}
	g.entered++
	g.inside++
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.inside--
	}, nil
}

func TestWritesWaitAtTheGate(t *testing.T) {
	t.Parallel()
	g := &gate{held: make(chan struct{})}
	manual := clock.NewManual(time.Date(2026, 5, 17, 10, 0, 0, 0, time.UTC))
	w := newWorld(t, func(site string, o *entry.Options) {
		if site == "a" {
			o.Gate, o.Clock = g, manual
		}
	})
	w.stores["a"].has["ada"], w.stores["b"].has["ada"] = true, true
	w.points["a"].places.set("ada", "a", 1)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	put := func() <-chan answer {
		got := make(chan answer, 1)
		go func() { got <- do(t, "PUT", w.points["a"].url+"/u/ada/x", strings.NewReader("new")) }()
		if err := manual.Await(ctx, 1); err != nil {
			t.Error(err)
		}
		return got
	}
	if got := get(t, w.points["a"].url+"/u/ada/x"); got.StatusCode != http.StatusOK || g.entered != 0 {
		t.Errorf("a read got %s", got.about())
	}
	// The hold ends with the owner at b.
	got := put()
	w.points["a"].places.set("ada", "b", 2)
	manual.Advance(40 * time.Millisecond)
	close(g.held)
	if a := <-got; a.about() != "200 b v2 hops 1" || a.body != "b has ada new" {
		t.Errorf("got %s %q", a.about(), a.body)
	}
	if row := w.points["a"].rows.await(t, 2)[1]; row.Wait < 40_000 || row.ToSite != "b" {
		t.Errorf("row %+v", row)
	}
	// The hold ends with nothing changed.
	g.held = make(chan struct{})
	w.points["a"].places.set("ada", "a", 3)
	got = put()
	held := g.held
	g.mu.Lock()
	g.held = nil
	g.mu.Unlock()
	close(held)
	if a := <-got; a.about() != "200 a v3 hops 0" || g.inside != 0 || g.entered != 1 {
		t.Errorf("got %s, %d inside", a.about(), g.inside)
	}
	// The hold lasts too long.
	g.mu.Lock()
	g.held = make(chan struct{})
	g.mu.Unlock()
	got = put()
	manual.Advance(time.Second)
	if a := <-got; a.StatusCode != http.StatusServiceUnavailable || a.Header.Get("Retry-After") != "1" {
		t.Errorf("got %s", a.about())
	}
}

// The owner moves after its location was looked up and before the write is in.
func TestAMoveBeforeTheGateIsSeen(t *testing.T) {
	t.Parallel()
	g := &gate{}
	w := newWorld(t, func(site string, o *entry.Options) {
		if site == "a" {
			o.Gate = g
		}
	})
	w.points["a"].places.set("ada", "a", 1)
	g.before = func() { w.points["a"].places.set("ada", "b", 2) }
	w.stores["a"].has["ada"], w.stores["b"].has["ada"] = true, true
	if got := do(t, "PUT", w.points["a"].url+"/u/ada/x", strings.NewReader("new")); got.about() != "200 b v2 hops 1" || w.stores["a"].calls != 0 {
		t.Errorf("got %s, %d calls of a", got.about(), w.stores["a"].calls)
	}
	if g.inside != 0 {
		t.Errorf("%d writes are inside", g.inside)
	}
}

func TestHundredMovesUnderLoad(t *testing.T) {
	t.Parallel()
	// A machine that stands still while nobody has an owner is no reason to answer 503.
	w := newWorld(t, func(_ string, o *entry.Options) { o.Hold = patience })
	names := []string{"a", "b", "c"}
	const owners = 10
	for i := range owners {
		w.stores["a"].has[fmt.Sprint("o", i)] = true
		for n, p := range w.points {
			p.places.set(fmt.Sprint("o", i), "a", 0)
			w.stores[n].moved[fmt.Sprint("o", i)] = word{"a", 0}
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var clients sync.WaitGroup
	var answered atomic.Int64
	for i := range 4 {
		clients.Go(func() {
			c := client(t)
			for n := i; ctx.Err() == nil; n++ {
				u := fmt.Sprintf("%s/u/o%d/x", w.points[names[n%3]].url, n%owners)
				resp, err := c.Post(u, "text/plain", strings.NewReader("hello"))
				if err != nil {
					t.Error(err)
					return
				}
				b, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				if hops := resp.Header.Get("Penstock-Hops"); resp.StatusCode != http.StatusOK || hops != "0" && hops != "1" || !strings.HasSuffix(string(b), "hello") {
					t.Errorf("got %d %q, hops %s", resp.StatusCode, b, hops)
				}
				answered.Add(1)
			}
		})
	}
	for move := range 100 {
		owner, from, to := fmt.Sprint("o", move%owners), names[move/owners%3], names[(move/owners+1)%3]
		version := uint64(move/owners + 1)
		w.stores[from].set(func() {
			delete(w.stores[from].has, owner)
			w.stores[from].moved[owner] = word{to, version}
		})
		time.Sleep(2 * time.Millisecond) // nobody has it for a while
		w.stores[to].set(func() { w.stores[to].has[owner] = true })
		if move%3 == 0 {
			w.points[names[move%3]].places.Learn(owner, to, version) // the bus is late for the others
		}
	}
	for answered.Load() < 100 && !t.Failed() {
		time.Sleep(time.Millisecond)
	}
	cancel()
	clients.Wait()
}
