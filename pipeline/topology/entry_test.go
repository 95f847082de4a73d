package topology

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"penstock/infra/clock"
	"penstock/infra/telemetry"
	"penstock/producers/entry"
)

// What 0 means in a configuration, and what it may hold, is what an entry point
// gets.
func TestEntryOptions(t *testing.T) {
	const sites = `
sites:
  - {name: a, lat: 1, lon: 2, capacity: 1MB/h, url: "http://a.example/", servers: ["http://127.0.0.1:1"]}
  - {name: b, lat: 1, lon: 2, capacity: 1MB/h, url: "http://b.example/"}
privacy: {user_key: "a key of tests"}
`
	options := func(text string) entry.Options {
		t.Helper()
		e := &Entry{Alone: Alone{Config: parse(t, sites+text), Logger: zerolog.Nop()}, Site: "a"}
		pools, o, err := e.options(&alone{Alone: &e.Alone, registry: telemetry.NewRegistry()}, nil)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		for _, p := range pools {
			p.Close()
		}
		e.split(&o)
		o.Listen = "" // only what the options say is of interest
		if _, err := entry.New(o); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		return o
	}
	o := options("")
	if o.Hold != time.Second || o.Drain != 30*time.Second || o.Replay != 64_000 || o.TraceSample != 1 || o.ForwardedOnly {
		t.Errorf("by default %+v", o)
	}
	other := options("")
	if len(o.PeerKey) < 16 || string(o.PeerKey) != string(other.PeerKey) {
		t.Errorf("keys among entry points are %q and %q", o.PeerKey, other.PeerKey)
	}
	if k, err := peerKey("", "another key of tests"); err != nil || string(k) == string(o.PeerKey) {
		t.Errorf("whatever the configuration, the key is %q, %v", k, err)
	}
	file := filepath.Join(t.TempDir(), "peer.key")
	if err := os.WriteFile(file, []byte("a key of its own\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if o := options("entry: {peer_key_file: " + strconv.Quote(file) + "}"); string(o.PeerKey) != "a key of its own" {
		t.Errorf("of a file the key is %q", o.PeerKey)
	}
	if u := o.Sites[1].URL; u != "http://b.example" {
		t.Errorf("redirects go to %s + path", u)
	}
	o = options("entry: {hold: 0s, drain: 0s, replay: 0, trace_sample: 0, forwarded_only: true}")
	if o.Hold >= 0 || o.Drain >= 0 || o.Replay >= 0 || o.TraceSample >= 0 || !o.ForwardedOnly {
		t.Errorf("none is %+v", o)
	}
	// Writes have their site whether there is a table or not, of what clients call too.
	o = options("entry: {component: web}\ncomponents:\n  - {name: cart, servers: {b: [\"http://127.0.0.1:1\"]}, writes_at: b}\n  - {name: web, writes_at: a}\n  - {name: shop, sites: [a]}")
	if c := o.Components; len(c) != 3 || c[0].WritesAt != "b" || c[1].WritesAt != "a" || c[2].WritesAt != "" {
		t.Errorf("components %+v", c)
	}
	// More than a pool holds in memory at once is kept by the entry point itself.
	if o = options("entry: {replay: 1MB, servers_h2: true}"); o.Replay != 1_000_000 {
		t.Errorf("replay %d", o.Replay)
	}
}

// Balancers are told before anything stops.
func TestNotReadyAtOnceWhenStopping(t *testing.T) {
	l := newLookout()
	stop, told := context.WithCancel(t.Context())
	defer told()
	release := l.until(stop)
	defer release()
	ctx, end := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.look(ctx) }()
	isReady := func() bool {
		not, _ := l.ready.NotReady()
		return len(not) == 0
	}
	wait := func(want bool) {
		t.Helper()
		for range 1000 {
			if isReady() == want {
				return
			}
			_ = clock.System().Sleep(t.Context(), time.Millisecond)
		}
		t.Errorf("ready is not %v", want)
	}
	wait(true)
	told()
	wait(false)
	end()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
