package entry_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"penstock/producers/entry"
	"penstock/producers/entry/identify"
	"penstock/producers/entry/upstream"
	"penstock/schemas/event"
)

// patience bounds what has to happen at once, also on a machine that stands still now
// and then.
const patience = time.Minute

// rows collects what entry points publish.
type rows struct {
	mu   sync.Mutex
	all  []event.Request
	more chan struct{}
}

func (r *rows) Publish(q *event.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, *q)
	if r.more != nil {
		close(r.more)
		r.more = nil
	}
}

// await returns the first n rows.
func (r *rows) await(t testing.TB, n int) []event.Request {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		r.mu.Lock()
		if len(r.all) >= n {
			defer r.mu.Unlock()
			for i := range r.all {
				if err := r.all[i].Check(); err != nil {
					t.Errorf("row %d: %v", i, err)
				}
			}
			return append([]event.Request(nil), r.all...)
		}
		if r.more == nil {
			r.more = make(chan struct{})
		}
		more := r.more
		r.mu.Unlock()
		select {
		case <-more:
		case <-ctx.Done():
			t.Fatalf("%d rows, expected %d", len(r.all), n)
		}
	}
}

// places is a directory of locations in memory.
type places struct {
	mu sync.Mutex
	at map[string]word
}

type word struct {
	site    string
	version uint64
}

func (p *places) Locate(owner string) (site string, version uint64, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w, ok := p.at[owner]
	return w.site, w.version, ok
}

func (p *places) Learn(owner, site string, version uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.at == nil {
		p.at = map[string]word{}
	}
	if w, ok := p.at[owner]; !ok || version > w.version {
		p.at[owner] = word{site, version}
	}
}

func (p *places) set(owner, site string, version uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.at == nil {
		p.at = map[string]word{}
	}
	p.at[owner] = word{site, version}
}

func pool(t testing.TB, name string, urls ...string) *upstream.Pool {
	t.Helper()
	o := upstream.Options{Name: name}
	for i, u := range urls {
		o.Servers = append(o.Servers, upstream.Server{Name: fmt.Sprintf("%s-%d", name, i+1), URL: u})
	}
	p, err := upstream.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// point is a running entry point.
type point struct {
	*entry.Entry
	rows   *rows
	places *places
	reg    *prometheus.Registry
	url    string
	stop   func() error // ends it and returns what Run returned
}

// run starts an entry point in front of the servers; change may change its
// options.
func run(t testing.TB, servers []string, change func(*entry.Options)) *point {
	t.Helper()
	p := &point{rows: &rows{}, places: &places{}, reg: prometheus.NewRegistry()}
	o := entry.Options{
		Listen: "127.0.0.1:0", Site: "a", Component: "web", Sites: []entry.Site{{Name: "a"}, {Name: "b"}, {Name: "c"}},
		Owner:     []identify.Rule{{Path: "/u/{owner}/**"}, {Header: "X-Owner"}},
		User:      []identify.Rule{{Header: "X-User"}, {Address: true}},
		HashKey:   []byte("a key of tests"),
		Local:     pool(t, "a", servers...),
		Locations: p.places, Publisher: p.rows, Registerer: p.reg,
	}
	if change != nil {
		change(&o)
	}
	e, err := entry.New(o)
	if err != nil {
		t.Fatal(err)
	}
	p.Entry = e
	scheme := "http://"
	if o.TLS != nil {
		scheme = "https://"
	}
	p.url = scheme + e.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	p.stop = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	t.Cleanup(func() {
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// counter returns the sum of a metric over the label values given as pairs.
func (p *point) counter(t testing.TB, name string, labels ...string) float64 {
	t.Helper()
	families, err := p.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
	metrics:
		for _, m := range f.GetMetric() {
			for i := 0; i < len(labels); i += 2 {
				found := false
				for _, l := range m.GetLabel() {
					found = found || l.GetName() == labels[i] && l.GetValue() == labels[i+1]
				}
				if !found {
					continue metrics
				}
			}
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return sum
}

// service starts a server with a handler.
func service(t testing.TB, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// plain makes requests over connections of its own, without following redirects.
func client(t testing.TB) *http.Client {
	t.Helper()
	transport := &http.Transport{DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{
		Transport: transport, Timeout: patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

type answer struct {
	*http.Response
	body string
}

func get(t testing.TB, url string, headers ...string) answer {
	t.Helper()
	return do(t, http.MethodGet, url, nil, headers...)
}

func do(t testing.TB, method, url string, body io.Reader, headers ...string) answer {
	t.Helper()
	r, err := http.NewRequest(method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return send(t, r)
}

func send(t testing.TB, r *http.Request) answer {
	t.Helper()
	resp, err := client(t).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp, string(b)}
}

// wire is a raw connection to an entry point.
type wire struct {
	net.Conn
	r *bufio.Reader
}

func dial(t testing.TB, p *point) *wire {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = c.SetDeadline(time.Now().Add(patience))
	t.Cleanup(func() { _ = c.Close() })
	return &wire{c, bufio.NewReader(c)}
}

func (w *wire) send(t testing.TB, s string) {
	t.Helper()
	if _, err := io.WriteString(w, s); err != nil {
		t.Fatal(err)
	}
}

// next reads an answer with its body; nil at the end of the connection.
func (w *wire) next(t testing.TB, method string) *answer {
	t.Helper()
	if _, err := w.r.Peek(1); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("the connection neither answers nor ends")
		}
		return nil
	}
	resp, err := http.ReadResponse(w.r, &http.Request{Method: method}) //nolint:bodyclose // it ends with the connection
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
	return &answer{resp, string(b)}
}
