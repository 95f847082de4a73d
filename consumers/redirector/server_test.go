package redirector

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/rs/zerolog"

	"penstock/consumers/executor/locations"
	"penstock/consumers/redirector/directory"
	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/infra/door"
	"penstock/infra/testserver"
	"penstock/schemas/control"
)

// serving runs a redirector until stop, or the end of the test.
func serving(t testing.TB, r *Redirector) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	done := false
	stop = func() error {
		if done {
			return nil
		}
		done = true
		cancel()
		return <-ended
	}
	t.Cleanup(func() { ok(t, stop()) })
	return stop
}

// eventually waits until something holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(bustest.Timeout); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v", what, bustest.Timeout)
		}
	}
}

// raw sends bytes and returns what comes back until the connection is closed.
func raw(t *testing.T, addr, text string) string {
	t.Helper()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
	ok(t, err)
	defer func() { ok(t, c.Close()) }()
	ok(t, c.SetDeadline(time.Now().Add(bustest.Timeout)))
	_, err = io.WriteString(c, text)
	ok(t, err)
	b, err := io.ReadAll(c)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		var closed *net.OpError
		if !errors.As(err, &closed) {
			t.Fatal(err)
		}
	}
	return string(b)
}

// TestNothingIsInjected: what a client or the bus says never becomes a header or
// another host, through a real server.
func TestNothingIsInjected(t *testing.T) {
	r, d, _ := setup(t, func(o *Options) {
		o.Sites["evil\r\nSet-Cookie: a=b"] = "http://odd.example"
	})
	d.owners["odd"] = control.Location{Site: "evil\r\nSet-Cookie: a=b", Version: 1, State: control.Live}
	serving(t, r)
	for _, target := range []string{
		"/r/ann/x%0d%0aSet-Cookie:%20a=b", "/r/ann/%0aSet-Cookie:a=b?%0d%0aSet-Cookie:a=b", "/r/odd/x", "/v1/locations/odd",
		"/v1/locations/%0d%0aSet-Cookie:%20a=b", "/r/ann//evil.example", "/r/ann/\\evil.example", "/r/ann/é?\xff",
		"http://evil.example/r/ann/x", "http://evil.example//r/ann/x", "/r/ann/x\tSet-Cookie:a=b",
	} {
		text := raw(t, r.Addr(), "GET "+target+" HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
		res, err := http.ReadResponse(bufio.NewReader(strings.NewReader(text)), nil)
		ok(t, err)
		if len(res.Cookies()) > 0 || strings.Contains(text, "\nSet-Cookie") {
			t.Errorf("%q: %q", target, text)
		}
		if l := res.Header.Get("Location"); l != "" {
			u, err := res.Location()
			if err != nil || u.Host != "east.example:8080" && u.Host != "odd.example" {
				t.Errorf("%q leads to %q, %v", target, l, err)
			}
		}
		ok(t, res.Body.Close())
	}
}

// TestLimits of the server: headers, slow clients, connections, and its end.
func TestLimits(t *testing.T) {
	r, _, _ := setup(t, func(o *Options) { o.Connections = 2 })
	stop := serving(t, r)
	// These wait for no more than they need; whoever is not slow is taken for slow by neither.
	short, _, _ := setup(t, nil)
	short.server.HTTP.ReadHeaderTimeout = 200 * time.Millisecond
	serving(t, short)
	longer, _, _ := setup(t, nil)
	longer.server.HTTP.ReadTimeout = 3 * time.Second
	serving(t, longer)
	if got := raw(t, r.Addr(), "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "+strings.Repeat("x", 2*door.MaxHeader)+"\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 431") {
		t.Errorf("headers without end: %.40q", got)
	}
	if got := raw(t, short.Addr(), "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n"); got != "" && !strings.HasPrefix(got, "HTTP/1.1 408") {
		t.Errorf("headers that never end: %.40q", got)
	}
	if got := raw(t, longer.Addr(), "POST /v1/locations HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\n\r\n{"); !strings.HasPrefix(got, "HTTP/1.1 400") {
		t.Errorf("a body that never ends: %.40q", got)
	}
	if got := raw(t, r.Addr(), "GET /r/ann/x HTTP/1.1\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 400") {
		t.Errorf("no host: %.40q", got)
	}
	// Two connections that stay, and a third that is served when one has gone.
	first, err := new(net.Dialer).DialContext(t.Context(), "tcp", r.Addr())
	ok(t, err)
	second, err := new(net.Dialer).DialContext(t.Context(), "tcp", r.Addr())
	ok(t, err)
	got := make(chan string, 1)
	go func() { got <- raw(t, r.Addr(), "GET /r/ann/x HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n") }()
	ok(t, first.Close())
	if text := <-got; !strings.HasPrefix(text, "HTTP/1.0 307") {
		t.Errorf("the third: %.40q", text)
	}
	ok(t, second.Close())
	ok(t, stop())
	if _, err := new(net.Dialer).DialContext(t.Context(), "tcp", r.Addr()); err == nil {
		t.Error("it still listens")
	}
	if err := r.Run(t.Context()); !errors.Is(err, door.ErrClosed) {
		t.Errorf("a second run: %v", err)
	}
}

func TestOptions(t *testing.T) {
	d := known()
	for name, c := range map[string]struct {
		o    Options
		want error
	}{
		"no directory":    {Options{}, ErrOptions},
		"no port":         {Options{Directory: d, Listen: "127.0.0.1"}, ErrOptions},
		"a negative rate": {Options{Directory: d, Rate: -1}, ErrOptions},
		"all addresses":   {Options{Directory: d, Listen: ":0"}, door.ErrToken},
		"a short token":   {Options{Directory: d, Listen: "0.0.0.0:0", Tokens: []string{secret, "short"}}, door.ErrToken},
		"an empty token":  {Options{Directory: d, Tokens: []string{""}}, ErrOptions},
		"no scheme":       {Options{Directory: d, Sites: map[string]string{"a": "x.y:80"}}, ErrOptions},
		"a script":        {Options{Directory: d, Sites: map[string]string{"a": "javascript:x"}}, ErrOptions},
		"a query":         {Options{Directory: d, Sites: map[string]string{"a": "http://x?y"}}, ErrOptions},
		"a password":      {Options{Directory: d, Sites: map[string]string{"a": "http://u:p@x"}}, ErrOptions},
		"no host":         {Options{Directory: d, Sites: map[string]string{"a": "http:///x"}}, ErrOptions},
		"a line":          {Options{Directory: d, Sites: map[string]string{"a": "http://x/\r\ny"}}, ErrOptions},
	} {
		if r, err := New(c.o); !errors.Is(err, c.want) || r != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, o := range map[string]Options{
		"a token":  {Directory: d, Listen: "0.0.0.0:0", Tokens: []string{secret}},
		"public":   {Directory: d, Listen: "0.0.0.0:0", Public: true},
		"loopback": {Directory: d, Listen: "[::1]:0"},
	} {
		r, err := New(o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		r.Close()
		r.Close()
		if err := r.Run(t.Context()); !errors.Is(err, door.ErrClosed) {
			t.Errorf("%s: run after close: %v", name, err)
		}
	}
	r, _, _ := setup(t, nil)
	if _, err := New(Options{Directory: d, Listen: r.Addr()}); err == nil || errors.Is(err, ErrOptions) {
		t.Errorf("an address in use: %v", err)
	}
}

// TestOverTheBus: a bus, a directory and two redirectors that share the questions.
// A move is followed; without the bus the last known is served over HTTP.
func TestOverTheBus(t *testing.T) {
	b := bustest.Start(t, func(o *bus.Options) { o.Prefix = "P" })
	c := bustest.Client(t, b)
	kv, err := locations.Open(t.Context(), c)
	ok(t, err)
	at := func(site string, version uint64) control.Location {
		return control.Location{Site: site, Version: version, State: control.Live, Since: t0}
	}
	revision, err := kv.Set(t.Context(), "bin\xff/", at("east", 1), 0)
	ok(t, err)
	d, err := directory.New(directory.Options{Client: bustest.Client(t, b), Snapshot: filepath.Join(t.TempDir(), "d"), Check: 20 * time.Millisecond})
	ok(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	defer func() { cancel(); ok(t, <-ended) }()
	<-d.Ready()
	var both []*Redirector
	for range 2 {
		r, err := New(Options{
			Directory: d, Client: bustest.Client(t, b), Listen: "127.0.0.1:0", Version: "1.2.3",
			Sites: map[string]string{"east": "http://east.example", "west": "http://west.example"},
		})
		ok(t, err)
		serving(t, r)
		both = append(both, r)
	}
	info := "$SRV.STATS." + ServiceName
	stats := func() (requests, services int) {
		inbox := c.NC.NewInbox()
		sub, err := c.NC.SubscribeSync(inbox)
		ok(t, err)
		defer func() { ok(t, sub.Unsubscribe()) }()
		ok(t, c.NC.PublishRequest(info, inbox, nil))
		for services < 2 {
			m, err := sub.NextMsg(time.Second)
			if errors.Is(err, nats.ErrTimeout) || errors.Is(err, nats.ErrNoResponders) {
				return requests, services
			}
			ok(t, err)
			var s micro.Stats
			ok(t, json.Unmarshal(m.Data, &s))
			if s.Version != "1.2.3" || len(s.Endpoints) != 2 {
				t.Errorf("%+v", s)
			}
			services++
			for _, e := range s.Endpoints {
				requests += e.NumRequests
			}
		}
		return requests, services
	}
	eventually(t, "two services", func() bool { _, n := stats(); return n == 2 })
	request := func(subject, body string) (string, string) {
		m, err := c.NC.Request(c.Subject(subject), []byte(body), bustest.Timeout)
		ok(t, err)
		return m.Header.Get(micro.ErrorCodeHeader) + m.Header.Get(micro.ErrorHeader), strings.TrimSpace(string(m.Data))
	}
	const answer = `{"token":"b64=Ymlu_y8","site":"%s","url":"http://%s.example","version":%d,"state":"live","since":"2015-05-17T10:00:00Z","age":0}`
	for _, x := range []struct{ subject, body, failure, want string }{
		{LocateSubject, "bin\xff/", "", fmt.Sprintf(answer, "east", "east", 1)},
		{LocateSubject, "nobody", "404" + failUnknown, `{"error":"unknown-owner","text":"the owner has no location: it was never moved, imported or pinned","owner":"nobody","age":0}`},
		{LocateSubject, strings.Repeat("x", 1025), "400" + failBody, `{"error":"bad-body","text":"no owner, of 1 to 1024 bytes, as one percent-encoded segment"}`},
		{LocateManySubject, `{"tokens":["b64=Ymlu_y8"]}`, "", `{"age":0,"locations":[` + fmt.Sprintf(answer, "east", "east", 1) + `]}`},
		{LocateManySubject, `{`, "400" + failBody, `{"error":"bad-body","text":"expected {\"owners\":[…],\"tokens\":[…]}: unexpected end of JSON input"}`},
	} {
		if failure, got := request(x.subject, x.body); failure != x.failure || got != x.want {
			t.Errorf("%.20q: %s\n got %s\nwant %s", x.body, failure, got, x.want)
		}
	}
	// A request is counted a moment after its answer was sent, and never twice.
	eventually(t, "the count of five requests", func() bool {
		n, services := stats()
		if n > 5 {
			t.Fatalf("%d requests were answered, 5 sent", n)
		}
		return n == 5 && services == 2
	})
	_, err = kv.Set(t.Context(), "bin\xff/", at("west", 2), revision)
	ok(t, err)
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	get := func(r *Redirector) (string, http.Header) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+r.Addr()+"/r/bin%FF%2F/a%2Fb?c=d", nil)
		ok(t, err)
		res, err := client.Do(req)
		ok(t, err)
		ok(t, res.Body.Close())
		return res.Header.Get("Location"), res.Header
	}
	eventually(t, "the move", func() bool { l, _ := get(both[0]); return l == "http://west.example/a%2Fb?c=d" })
	b.Suspend()
	eventually(t, "the age", func() bool { _, h := get(both[1]); return h.Get("Penstock-Age") != "0" })
	if l, h := get(both[0]); l != "http://west.example/a%2Fb?c=d" || h.Get("Penstock-Version") != "2" || !strings.HasPrefix(h.Get("Warning"), "112 ") {
		t.Errorf("without the bus: %q %v", l, h)
	}
	ok(t, b.Resume())
	eventually(t, "the bus", c.NC.IsConnected)
	eventually(t, "freshness", func() bool { _, h := get(both[1]); return h.Get("Penstock-Age") == "0" })
	eventually(t, "an answer on the bus", func() bool {
		m, err := c.NC.Request(c.Subject(LocateSubject), []byte("bin\xff/"), 200*time.Millisecond)
		return err == nil && strings.Contains(string(m.Data), `"west"`)
	})
}

// TestLimitsOnTheBus: the rate of all counts there, and what isn't known isn't told.
func TestLimitsOnTheBus(t *testing.T) {
	b := bustest.Start(t)
	c := bustest.Client(t, b)
	r, d, wall := setup(t, func(o *Options) {
		o.Client, o.TotalRate, o.Batch, o.MaxAge = bustest.Client(t, b), 1, 1, time.Second
	})
	stop := serving(t, r)
	status := func() (status string) {
		eventually(t, "an answer", func() bool {
			m, err := c.NC.Request(LocateSubject, []byte("ann"), bustest.Timeout)
			if err != nil {
				return false // nobody listens yet
			}
			status = m.Header.Get(micro.ErrorCodeHeader) + m.Header.Get(micro.ErrorHeader)
			return true
		})
		return status
	}
	if got := status() + " " + status(); got != " 429"+failLimited {
		t.Errorf("a second lookup in a second: %q", got)
	}
	wall.Advance(time.Minute)
	d.since = time.Minute
	if got := status(); got != "503"+failTooOld {
		t.Errorf("an old directory: %q", got)
	}
	ok(t, stop())
	if _, err := c.NC.Request(LocateSubject, nil, bustest.Timeout); !errors.Is(err, nats.ErrNoResponders) {
		t.Errorf("after the end: %v", err)
	}
}

// TestStartsAndEndsWithoutTheBus: an outage is no reason not to serve, nor to hang
// at the end; with the bus the questions on it are answered.
func TestStartsAndEndsWithoutTheBus(t *testing.T) {
	address := testserver.FreeAddress(t)
	patient, err := bus.Open(t.Context(), bus.Options{URL: "nats://" + address, Patient: true, Logger: zerolog.Nop()})
	ok(t, err)
	defer func() { ok(t, patient.Close()) }()
	for _, comes := range []bool{false, true} {
		r, _, _ := setup(t, func(o *Options) { o.Client = bustest.Client(t, patient) })
		stop := serving(t, r)
		if got := raw(t, r.Addr(), "GET /r/ann/x HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.0 307") {
			t.Errorf("without the bus: %.40q", got)
		}
		if comes {
			b := bustest.Start(t, func(o *bus.Options) { o.Listen = address })
			c := bustest.Client(t, b)
			eventually(t, "an answer on the bus", func() bool {
				m, err := c.NC.Request(LocateSubject, []byte("ann"), 200*time.Millisecond)
				return err == nil && strings.Contains(string(m.Data), `"east"`)
			})
			b.Suspend()
		}
		began := time.Now()
		ok(t, stop())
		if took := time.Since(began); took > 4*time.Second { // What hangs is cut off after 5 s.
			t.Errorf("the end took %v", took)
		}
	}
}
