package picker

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"penstock/schemas/control"
)

// api is a pull API of a test's own, on an address that it keeps.
type api struct {
	t       *testing.T
	address string

	mu      sync.Mutex
	now     *control.SplitAnswer
	servers string // its digest
	other   http.HandlerFunc
	changed chan struct{}
	parked  map[string]chan struct{} // closed when a question waits that has this tag
	asked   []http.Header
	stop    func()
}

// startAPI serves an answer.
func startAPI(t *testing.T, a *control.SplitAnswer) *api {
	t.Helper()
	x := &api{t: t, address: "127.0.0.1:0", now: a, servers: "s", changed: make(chan struct{}), parked: map[string]chan struct{}{}}
	x.start()
	t.Cleanup(func() { x.stop() })
	return x
}

// start serves at the address, which may have been served before.
func (x *api) start() {
	x.t.Helper()
	var l net.Listener
	var err error
	for range 1000 { // it may be in use for a moment yet
		if l, err = new(net.ListenConfig).Listen(context.Background(), "tcp", x.address); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	ok(x.t, err)
	x.address = l.Addr().String()
	server := &http.Server{Handler: x}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(l)
	}()
	once := sync.Once{}
	x.stop = func() {
		once.Do(func() {
			_ = server.Close()
			<-ended
		})
	}
}

func (x *api) url() string { return "http://" + x.address }

// set changes what is told.
func (x *api) set(change func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	change()
	close(x.changed)
	x.changed = make(chan struct{})
}

// waits returns when a question waits whose asker knows the epoch: so it is in force
// there.
func (x *api) waits(epoch uint64) {
	x.t.Helper()
	x.mu.Lock()
	c := x.park(tagOf(epoch))
	x.mu.Unlock()
	select {
	case <-c:
	case <-time.After(time.Minute):
		x.t.Fatalf("nobody knows epoch %d", epoch)
	}
}

func tagOf(epoch uint64) string { return `"` + strconv.FormatUint(epoch, 10) + `"` }

func (x *api) park(tag string) chan struct{} {
	if x.parked[tag] == nil {
		x.parked[tag] = make(chan struct{})
	}
	return x.parked[tag]
}

func (x *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x.mu.Lock()
	x.asked = append(x.asked, r.Header)
	x.mu.Unlock()
	for {
		x.mu.Lock()
		a, servers, other, changed := x.now, x.servers, x.other, x.changed
		x.mu.Unlock()
		if other != nil {
			other(w, r)
			return
		}
		if r.URL.Path != "/v1/split/"+a.Component || r.URL.Query().Get("from_site") != a.FromSite || r.URL.Query().Get("from") != a.From {
			http.Error(w, `{"error":"unknown","text":"that is not served here"}`, http.StatusNotFound)
			return
		}
		tag := tagOf(a.Epoch)
		w.Header().Set("ETag", tag)
		w.Header().Set("Penstock-Servers", servers)
		w.Header().Set("Penstock-Age", "3")
		if r.Header.Get("If-None-Match") != tag {
			body, err := control.Encode(a)
			if err != nil {
				x.t.Error(err)
			}
			_, _ = w.Write(body)
			return
		}
		wait, err := time.ParseDuration(r.URL.Query().Get("wait"))
		if err != nil {
			x.t.Error(err)
		}
		x.mu.Lock()
		c := x.park(tag)
		select {
		case <-c:
		default:
			close(c)
		}
		x.mu.Unlock()
		select {
		case <-changed:
		case <-time.After(wait):
			w.WriteHeader(http.StatusNotModified)
			return
		case <-r.Context().Done():
			return
		}
	}
}

// told is an answer to web's question for cart from east; sites are east and west.
func told(epoch uint64, east, west float64) *control.SplitAnswer {
	return &control.SplitAnswer{
		Component: "cart", From: "web", FromSite: "east", Epoch: epoch, Known: true,
		Ratios: []control.SplitSite{
			{Site: "east", Share: east, Servers: []string{"http://e1", "http://e2"}},
			{Site: "west", Share: west, Servers: []string{"http://w1"}},
		},
	}
}

// open returns a picker of web at east.
func open(t testing.TB, url string, change func(*Options)) *Picker {
	t.Helper()
	o := Options{URL: url, Component: "web", Site: "east", Retry: 50 * time.Millisecond, Fallback: map[string][]string{"cart": {"http://f1", "http://f2"}}}
	if change != nil {
		change(&o)
	}
	p, err := Open(context.Background(), o)
	ok(t, err)
	t.Cleanup(p.Close)
	return p
}

// count picks, and returns how many went to each server.
func count(p *Picker, n int) map[string]int {
	got := map[string]int{}
	for range n {
		got[p.Pick("cart").Server]++
	}
	return got
}

func counted(t *testing.T, what string, p *Picker, want map[string]int) {
	t.Helper()
	n := 0
	for _, each := range want {
		n += each
	}
	if got := count(p, n); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}
