package middleware

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/infra/testserver"
	"penstock/schemas/event"
)

func TestOptionsThatCannotBe(t *testing.T) {
	t.Parallel()
	good := Options{URL: "nats://127.0.0.1:1", Entry: "e", Component: "c", Site: "s", SpoolDir: t.TempDir()}
	for what, spoil := range map[string]func(*Options){
		"URL":        func(o *Options) { o.URL = "" },
		"Entry":      func(o *Options) { o.Entry = "" },
		"Component":  func(o *Options) { o.Component = "" },
		"Site":       func(o *Options) { o.Site = "" },
		"SpoolDir":   func(o *Options) { o.SpoolDir = "" },
		"to_server":  func(o *Options) { o.Server = strings.Repeat("x", event.MaxID+1) },
		"partitions": func(o *Options) { o.Partitions = 26 },
		"prefix":     func(o *Options) { o.Prefix = "a.b" },
	} {
		o := good
		spoil(&o)
		if _, err := Open(testContext(t), o); !errors.Is(err, ErrOptions) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestTheBusIsAway from the start and beyond the end of a process, and the service
// serves. The next process sends what the first could not.
func TestTheBusIsAway(t *testing.T) {
	t.Parallel()
	at := testserver.FreeAddress(t)
	dir := t.TempDir()
	serve := func(rec *Recorder, from, n int) {
		h := rec.HTTP(http.NotFoundHandler(), Rules{Owner: Header("X-Owner")})
		for i := range n {
			q := httptest.NewRequest(http.MethodGet, "/", nil)
			q.Header.Set("X-Owner", fmt.Sprint("owner-", from+i))
			w := httptest.NewRecorder()
			h.ServeHTTP(w, q)
			if w.Code != http.StatusNotFound {
				t.Fatalf("status %d", w.Code)
			}
		}
	}
	spool := func(o *Options) { o.SpoolDir = dir }
	first := record(t, "nats://"+at, spool)
	serve(first, 0, 500)
	began := time.Now()
	if err := first.Close(testContext(t)); err != nil || time.Since(began) > bustest.Timeout/2 {
		t.Errorf("closed after %v: %v", time.Since(began), err)
	}
	second := record(t, "nats://"+at, spool)
	serve(second, 500, 500)
	b := bustest.Start(t, func(o *bus.Options) { o.Listen = at })
	serve(second, 1000, 500)
	if err := second.client.Ready(testContext(t)); err != nil || second.Fault() != nil {
		t.Fatal(err)
	}
	if err := second.Close(testContext(t)); err != nil {
		t.Fatal(err)
	}
	if rows := published(t, b, 1500); len(rows) != 1500 {
		t.Errorf("%d owners are there, 1500 were served", len(rows))
	}
}

// TestAnotherBus is told of, and gets nothing.
func TestAnotherBus(t *testing.T) {
	t.Parallel()
	b := listening(t, func(o *bus.Options) { o.Partitions = 3 })
	rec := record(t, b.URL())
	var diff *bus.DiffError
	ctx := testContext(t)
	for !errors.As(rec.Fault(), &diff) { // it has begun without, if the machine stood still
		select {
		case <-ctx.Done():
			t.Fatalf("fault: %v", rec.Fault())
		case <-time.After(time.Millisecond):
		}
	}
	row := event.NewRequest(0)
	rec.Record(&row)
	if err := rec.Close(testContext(t)); err != nil || rec.Stats().Sent != 0 {
		t.Errorf("sent %d, %v", rec.Stats().Sent, err)
	}
}

func TestRecordFillsIn(t *testing.T) {
	t.Parallel()
	b := listening(t)
	rec := record(t, b.URL())
	own := event.NewRequest(0)
	own.Owner = "own"
	other := event.NewRequest(time.Now().UnixMicro())
	other.Owner, other.ToComponent, other.ToSite = "other", "store", "us-west"
	before := time.Now().UnixMicro()
	rec.Record(&own)
	rec.Record(&other)
	bad := event.NewRequest(0)
	bad.Owner = strings.Repeat("x", event.MaxID+1)
	rec.Record(&bad)
	if err := rec.Close(testContext(t)); err != nil {
		t.Fatal(err)
	}
	rows := published(t, b, 2)
	if r := rows["own"]; r.Time < before || r.ToComponent != "shop" || r.ToSite != "us-east" || r.ToServer != "s1" || r.Status != event.NullStatus {
		t.Errorf("own: %+v", r)
	}
	if r := rows["other"]; r.Time != other.Time || r.ToComponent != "store" || r.ToSite != "us-west" || r.ToServer != "" {
		t.Errorf("other: %+v", r)
	}
	if s := rec.Stats(); s.Invalid != 1 || s.Sent != 2 {
		t.Errorf("stats: %+v", s)
	}
}
