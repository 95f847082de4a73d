package admin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"penstock/consumers/executor/coder"
	"penstock/consumers/executor/coder/chunks"
	"penstock/consumers/executor/coder/codes"
	"penstock/consumers/executor/coder/object"
	"penstock/consumers/executor/coder/queue"
	"penstock/infra/door"
	"penstock/schemas/control"
)

// slow is a store whose reads wait once told to.
type slow struct {
	*chunks.Memory

	gate chan struct{} // reads wait while it is open and not nil
	in   chan struct{} // has one for a read that waits
}

func (s *slow) Get(ctx context.Context, key string, off, n int64, w io.Writer) (int64, error) {
	if strings.Contains(key, "/b/") && s.gate != nil { // a look at a store that is slow may come at any time
		select {
		case s.in <- struct{}{}:
		default:
		}
		select {
		case <-s.gate:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
	return s.Memory.Get(ctx, key, off, n, w)
}

// choice is a chooser that has made up its mind, and has seen one request wait.
func choice(t *testing.T) *codes.Chooser {
	t.Helper()
	always := control.CodingCodes{N: []float64{control.MaxBacklog}, RMax: 2}
	table := control.CodingTable{Policy: control.CodingReplicate, Read: always, Write: always}
	c, err := codes.New(codes.Options{Default: table, Smoothing: 0.5})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Set(&table, 7, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	c.Arrived(1)
	return c
}

// world is an admin server, its coder, and a client.
type world struct {
	*coder.Coder
	stores []*slow
	server *Server
	client *Client
	stop   func()
}

func setup(t *testing.T, change func(*Options)) *world {
	t.Helper()
	w := &world{}
	o := coder.Options{
		Name: "objects", State: t.TempDir(), Layout: object.Spread, N: 3, K: 2, Durability: coder.Durability{All: true},
		Chooser: queue.Fixed{N: 2, K: 1}, Segment: 64 << 10, Grace: time.Second, Retry: time.Minute,
	}
	for i := range o.N {
		w.stores = append(w.stores, &slow{Memory: chunks.NewMemory(fmt.Sprintf("store-%d", i)), in: make(chan struct{}, 1)})
		o.Stores = append(o.Stores, w.stores[i])
	}
	c, err := coder.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	w.Coder = c
	a := Options{Name: "objects", Layout: "spread", Coder: c, Codes: choice(t), Listen: "127.0.0.1:0"}
	if change != nil {
		change(&a)
	}
	if w.server, err = New(a); err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	w.client = &Client{Addr: w.server.Addr(), HTTP: &http.Client{Transport: transport}}
	ctx, cancel := context.WithCancel(context.Background())
	coding, answering := make(chan error, 1), make(chan error, 1)
	codingCtx, cancelCoding := context.WithCancel(context.Background())
	go func() { coding <- c.Run(codingCtx) }()
	go func() { answering <- w.server.Run(ctx) }()
	stopped := false
	w.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-answering; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		w.stop()
		cancelCoding()
		if err := errors.Join(<-coding, c.Close()); err != nil {
			t.Error(err)
		}
	})
	if err := c.CreateBucket(t.Context(), "bucket"); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) put(t *testing.T, key string, size int) {
	t.Helper()
	_, err := w.Put(t.Context(), coder.PutInput{Bucket: "bucket", Key: key, Body: bytes.NewReader(make([]byte, size)), Size: int64(size)})
	if err != nil {
		t.Fatal(err)
	}
}

// TestStatusAndScrub: a lost blob is counted by one scrub, repaired by another, and told.
func TestStatusAndScrub(t *testing.T) {
	t.Parallel()
	w := setup(t, nil)
	for i := range 5 {
		w.put(t, fmt.Sprint(i), 100_000)
	}
	if err := w.client.Healthy(t.Context()); err != nil {
		t.Error(err)
	}
	s, err := w.client.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if s.Coder != "objects" || s.Layout != "spread" || s.Objects != 5 || s.Bytes != 500_000 || s.Read != (Code{2, 1}) || s.Write != (Code{2, 1}) ||
		s.Epoch != 7 || s.Until == nil || s.Smoothed != 0.5 || len(s.Stores) != 3 || s.Stores[0].Name != "store-0" || s.Limit != 16 || s.LastScrub != nil {
		t.Errorf("%+v", s)
	}
	lost, err := w.stores[1].List(t.Context(), "objects/b/", "", 1)
	if err != nil || len(lost) != 1 {
		t.Fatal(lost, err)
	}
	if err := w.stores[1].Delete(t.Context(), lost[0].Key); err != nil {
		t.Fatal(err)
	}
	for i, repair := range []bool{false, true, false} {
		var told []Progress
		r, err := w.client.Scrub(t.Context(), coder.ScrubOptions{Repair: repair}, func(p Progress) { told = append(told, p) })
		if err != nil || r.Versions != 5 || len(told) == 0 || told[0].VersionsTotal != 5 {
			t.Errorf("scrub %d: %+v, %v, told %+v", i, r, err, told)
		}
		if want := [3]int64{1, 1, 0}[i]; r.Lacking != want || r.Repaired != [3]int64{0, 1, 0}[i] {
			t.Errorf("scrub %d: %+v", i, r)
		}
		s, err := w.client.Status(t.Context())
		if err != nil || s.Scrub != nil || s.LastScrub == nil || s.LastScrub.Repair != repair || s.LastScrub.Report.Lacking != r.Lacking || s.LastScrub.Progress.Versions != 5 {
			t.Errorf("status %d: %+v, %v", i, s.LastScrub, err)
		}
	}
}

// TestLostIsTold: what a scrub finds unreadable is named in its report, and stays in the
// status until another one finds none.
func TestLostIsTold(t *testing.T) {
	t.Parallel()
	w := setup(t, nil)
	w.put(t, "a/b", 1000)
	for _, s := range w.stores[:2] {
		blobs, err := s.List(t.Context(), "objects/b/", "", 10)
		if err != nil || len(blobs) != 1 {
			t.Fatal(blobs, err)
		}
		if err := s.Delete(t.Context(), blobs[0].Key); err != nil {
			t.Fatal(err)
		}
	}
	r, err := w.client.Scrub(t.Context(), coder.ScrubOptions{}, nil)
	if err != nil || r.Unreadable != 1 || len(r.Lost) != 1 || r.Lost[0].Bucket != "bucket" || r.Lost[0].Key != "a/b" || r.Lost[0].Version == "" {
		t.Fatalf("%+v, %v", r, err)
	}
	s, err := w.client.Status(t.Context())
	if err != nil || s.Unreadable != 1 || s.LastScrub == nil || !slices.Equal(s.LastScrub.Report.Lost, r.Lost) {
		t.Errorf("%+v, %v", s, err)
	}
	w.put(t, "a/b", 1000)
	if _, err := w.client.Scrub(t.Context(), coder.ScrubOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	if s, err := w.client.Status(t.Context()); err != nil || s.Unreadable != 0 || len(s.LastScrub.Report.Lost) != 0 {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestOneScrub: a second one is refused; who goes away ends his; so does the server's end.
func TestOneScrub(t *testing.T) {
	t.Parallel()
	w := setup(t, nil)
	w.put(t, "k", 100_000)
	gate := make(chan struct{})
	for _, s := range w.stores {
		s.gate = gate
	}
	waits := func() {
		t.Helper()
		select {
		case <-w.stores[0].in:
		case <-w.stores[1].in:
		case <-w.stores[2].in:
		case <-time.After(20 * time.Second):
			t.Fatal("no scrub runs")
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() {
		_, err := w.client.Scrub(ctx, coder.ScrubOptions{}, nil)
		first <- err
	}()
	waits()
	if _, err := w.client.Scrub(t.Context(), coder.ScrubOptions{}, nil); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), ErrScrubbing.Error()) {
		t.Errorf("second: %v", err)
	}
	if s, err := w.client.Status(t.Context()); err != nil || s.Scrub == nil || s.Scrub.Report != nil {
		t.Errorf("%+v, %v", s.Scrub, err)
	}
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("first: %v", err)
	}
	for {
		s, err := w.client.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if s.Scrub == nil {
			if s.LastScrub == nil || s.LastScrub.Error == "" {
				t.Errorf("%+v", s.LastScrub)
			}
			break
		}
	}
	go func() {
		_, err := w.client.Scrub(t.Context(), coder.ScrubOptions{}, nil)
		first <- err
	}()
	waits()
	w.stop()
	if err := <-first; !errors.Is(err, ErrFailed) && !errors.Is(err, ErrCut) && err == nil {
		t.Errorf("the server's end: %v", err)
	}
	close(gate)
}

// TestDoor: who may come in, and what can be asked.
func TestDoor(t *testing.T) {
	t.Parallel()
	const token = "a token of some length"
	w := setup(t, func(o *Options) { o.Tokens = []string{token} })
	ask := func(method, path string, headers ...string) int {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, "http://"+w.server.Addr()+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		res, err := w.client.HTTP.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		return res.StatusCode
	}
	bearer := []string{"Authorization", "Bearer " + token}
	for _, c := range []struct {
		method, path string
		headers      []string
		want         int
	}{
		{"GET", "/healthz", nil, 200},
		{"GET", "/v1/status", nil, 401},
		{"GET", "/v1/status", []string{"Authorization", "Bearer x"}, 401},
		{"GET", "/v1/status", bearer, 200},
		{"POST", "/v1/status", bearer, 405},
		{"GET", "/v1/scrub", bearer, 405},
		{"POST", "/v1/scrub", nil, 401},
		{"POST", "/v1/scrub", append([]string{"Origin", "http://127.0.0.1"}, bearer...), 403},
		{"POST", "/v1/scrub", append([]string{"Sec-Fetch-Site", "same-origin"}, bearer...), 403},
		{"POST", "/v1/scrub?repair=perhaps", bearer, 400},
		{"POST", "/v1/scrub?rate=-1", bearer, 400},
		{"POST", "/v1/scrub?fast=true", bearer, 400},
		{"POST", "/v1/scrub?repair=true&repair=false", bearer, 400},
		{"POST", "/v1/scrub?repair=true&orphans=1&rate=1000000", bearer, 200},
		{"GET", "/v1/other", bearer, 404},
	} {
		if got := ask(c.method, c.path, c.headers...); got != c.want {
			t.Errorf("%s %s %v: %d, expected %d", c.method, c.path, c.headers, got, c.want)
		}
	}
	if _, err := w.client.Status(t.Context()); !errors.Is(err, ErrRefused) {
		t.Errorf("without a token: %v", err)
	}
	w.client.Token, w.client.Addr = token, "http://"+w.server.Addr()+"/"
	if _, err := w.client.Status(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	c := &coder.Coder{}
	for name, x := range map[string]struct {
		o    Options
		want error
	}{
		"nothing":      {Options{Listen: "127.0.0.1:0"}, ErrOptions},
		"no codes":     {Options{Coder: c, Listen: "127.0.0.1:0"}, ErrOptions},
		"off loopback": {Options{Coder: c, Codes: choice(t), Listen: "0.0.0.0:0"}, door.ErrToken},
		"a token":      {Options{Coder: c, Codes: choice(t), Listen: "0.0.0.0:0", Tokens: []string{"a token of some length"}}, nil},
	} {
		s, err := New(x.o)
		if !errors.Is(err, x.want) {
			t.Errorf("%s: %v", name, err)
		}
		if s != nil {
			s.Close()
			if err := s.Run(t.Context()); !errors.Is(err, door.ErrClosed) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestQuery: what is written is read.
func TestQuery(t *testing.T) {
	t.Parallel()
	for _, o := range []coder.ScrubOptions{{}, {Repair: true}, {Orphans: true, Rate: 5}, {Repair: true, Orphans: true, Rate: 1 << 40}} {
		if got, err := parseQuery(query(o)); err != nil || got != o {
			t.Errorf("%+v: %+v, %v", o, got, err)
		}
	}
}
