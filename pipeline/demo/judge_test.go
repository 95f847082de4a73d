package demo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/infra/clock"
	"penstock/infra/objectstore"
	"penstock/infra/objectstore/dir"
	"penstock/pipeline/config"
	"penstock/pipeline/demo/ledger"
	"penstock/pipeline/demo/links"
	"penstock/pipeline/demo/notes"
	"penstock/schemas/control"
	"penstock/schemas/subject"
	"penstock/schemas/window"
)

// played is a demonstration of which only the books, the stores and the observer
// are there.
func played(t *testing.T) *show {
	t.Helper()
	w := world(20)
	s := &show{
		backstage: &backstage{Live: &Live{Dir: t.TempDir(), Window: 5 * time.Second}},
		world:     w, users: &users{world: w, books: ledger.New()}, clock: clock.NewManual(time.Unix(1000, 0)),
	}
	s.seer = newObserver(nil, s.clock.Now)
	return s
}

func TestStoresAreComparedWithBooksAndLocations(t *testing.T) {
	s := played(t)
	st, err := dir.Open(s.store("us-east"), dir.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	write := func(owner, id string) {
		t.Helper()
		if err := notes.Create(t.Context(), st, owner); err != nil {
			t.Fatal(err)
		}
		if _, err := notes.Write(t.Context(), st, owner, notes.Note{ID: id}); err != nil {
			t.Fatal(err)
		}
	}
	promise := func(owner string, ids ...string) {
		for _, id := range ids {
			s.users.books.Sent(owner, id)
			s.users.books.Acknowledged(owner, id)
		}
	}
	write("ann", "n1")
	write("ann", "n2")
	promise("ann", "n1", "n2")
	write("ben", "n3")
	promise("ben", "n3", "n4")
	write("cleo", "n5")
	promise("cleo", "n5")
	if err := st.Mark(t.Context(), "cleo", objectstore.Mark{}, objectstore.Mark{State: objectstore.Retired, Version: 1, Site: "eu-west"}); err != nil {
		t.Fatal(err)
	}
	r := &Result{}
	if err := s.compare(t.Context(), r, map[string]string{"ann": "eu-west", "ben": "us-east", "cleo": "eu-west"}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"an acknowledged write is lost of ben: n4",
		"an acknowledged write is lost of cleo: n5",
		"ann is live at us-east, and its location says eu-west",
		"there is no live copy of cleo",
	}
	slices.Sort(r.Broken)
	if !slices.Equal(r.Broken, want) {
		t.Errorf("%q, expected %q", r.Broken, want)
	}
	if r.Books != (Books{Owners: 3, Sent: 5, Acknowledged: 5, Found: 3}) {
		t.Errorf("%+v", r.Books)
	}
}

func TestPromisesThatAreNotKept(t *testing.T) {
	at := time.Unix(1000, 0)
	kept := Trip{From: "eu-west", To: "us-east", Left: at, Followed: at.Add(8 * time.Second), Windows: 2}
	for _, c := range []struct {
		name string
		do   func(s *show, r *Result)
		want string
	}{
		{"all kept", func(*show, *Result) {}, ""},
		{"three windows", func(s *show, _ *Result) { s.trips[0].Windows = 3 }, "took 3 windows to us-east, promised are 2"},
		{"never", func(s *show, _ *Result) { s.trips[0].Followed = time.Time{} }, "were not at us-east after 8 windows"},
		{"a failed request", func(s *show, _ *Result) { s.users.faults.add(failed, "it was late") }, "1 requests failed, such as: it was late"},
		{"two hops", func(s *show, _ *Result) { s.users.faults.add(detour, "Penstock-Hops: 2") }, "more than one hop"},
		{"rows that are missing", func(_ *show, r *Result) { r.Account.Received-- }, "10 requests were answered, and the account knows of 9"},
		{"lost batches", func(_ *show, r *Result) { r.Account.LostBatches = 1 }, "1 batches are lost"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := played(t)
			s.trips = []Trip{kept}
			r := &Result{Answers: 10, Account: window.Account{Received: 10, Counted: 10}}
			c.do(s, r)
			s.promises(r)
			if c.want == "" && len(r.Broken) == 0 && r.Trips[0] == (TripResult{"eu-west", "us-east", true, 8, 2}) {
				return
			}
			if c.want == "" || len(r.Broken) != 1 || !strings.Contains(r.Broken[0], c.want) {
				t.Errorf("%q, %+v; expected %q", r.Broken, r.Trips, c.want)
			}
		})
	}
}

func TestPhasesAreMeasuredFromTheInstantsThatWereDue(t *testing.T) {
	s := played(t)
	at := time.Unix(1000, 0)
	s.phases = []phase{{"before", at, at.Add(10 * time.Second)}, {"after", at.Add(10 * time.Second), at.Add(20 * time.Second)}}
	add := func(second int, latency time.Duration, k kind) {
		s.users.seen.Add(at.Add(time.Duration(second)*time.Second), latency, k)
	}
	for i := range 10 {
		add(i, time.Duration(i+1)*time.Millisecond, kind{crowd: true})
	}
	add(9, time.Second, kind{crowd: true, way: Stale, hops: 1})
	add(5, time.Hour, kind{}) // not of the crowd
	add(10, 2*time.Second, kind{crowd: true, way: Looked})
	r := &Result{}
	s.measure(r)
	want := []Phase{
		{"before", []Delay{{"all", 11, 6, 1000, 1. / 11}, {"nearest entry", 10, 5, 10, 0}, {Way: "by redirector"}, {Way: "sent by 307"}, {"stale client", 1, 1000, 1000, 1}}},
		{"after", []Delay{{"all", 1, 2000, 2000, 0}, {Way: "nearest entry"}, {"by redirector", 1, 2000, 2000, 0}, {Way: "sent by 307"}, {Way: "stale client"}}},
	}
	if fmt.Sprint(r.Phases) != fmt.Sprint(want) {
		t.Errorf("%v, expected %v", r.Phases, want)
	}
	if r.Answers != 13 || r.Hops != [2]int{12, 1} || r.Stale != [2]int{0, 1} {
		t.Errorf("%+v", r)
	}
}

// TestTheObserverSeesWhatHappens on a real bus.
func TestTheObserverSeesWhatHappens(t *testing.T) {
	c := bustest.Client(t, bustest.Start(t))
	clk := clock.NewManual(time.Unix(1000, 0))
	o := newObserver(c, clk.Now)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- o.run(ctx) }()
	kv, err := c.KV(t.Context(), subject.LocationsKV)
	if err != nil {
		t.Fatal(err)
	}
	encode := func(v any) []byte {
		t.Helper()
		body, err := control.Encode(v)
		if err != nil {
			t.Fatal(err)
		}
		return body
	}
	place := func(owner, site string, version uint64) {
		t.Helper()
		if _, err := kv.Put(t.Context(), subject.Encode(owner), encode(control.Location{Site: site, Version: version, State: control.Live, Since: clk.Now().UTC()})); err != nil {
			t.Fatal(err)
		}
	}
	await := func(holds func() bool) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := o.await(ctx, holds); err != nil {
			t.Fatal(err)
		}
	}
	owners := []string{"ann@x", "ben", "cleo"}
	for _, owner := range owners {
		place(owner, "eu-west", 0)
	}
	await(func() bool { return len(o.owners) == 3 && o.arrived(owners, "eu-west") == 1 })
	start := time.Unix(990, 0).UTC()
	w := func(n int) control.Window {
		return control.Window{Start: start.Add(time.Duration(n) * 5 * time.Second), End: start.Add(time.Duration(n+1) * 5 * time.Second)}
	}
	for i, owner := range owners[:2] {
		publish(t, c, subject.Commands("placement", "us-east"), encode(control.Command{
			Version: 1, Kind: control.Placement, Scope: "us-east", Epoch: uint64(i + 1), Window: w(i), Mode: control.Act, TTL: "1h",
			Reason:    control.Reason{Code: "Better"},
			Placement: &control.Moves{Moves: []control.Move{{Owner: owner, From: "eu-west", To: "us-east", Version: 1}}},
		}))
	}
	await(func() bool { return len(o.moves) == 2 })
	for _, owner := range owners[:2] {
		clk.Advance(time.Second)
		place(owner, "us-east", 1)
		want := owner
		await(func() bool { return o.owners[want].Site == "us-east" })
	}
	publish(t, c, subject.Outcomes("placement", "us-east"), encode(control.Outcome{
		Version: 1, Kind: control.Placement, Scope: "us-east", Owner: "ben", Move: 1, Status: control.Done, Bytes: 77, By: "m", At: clk.Now().UTC(),
	}))
	publish(t, c, subject.Outcomes("placement", "us-east"), encode(control.Outcome{
		Version: 1, Kind: control.Placement, Scope: "us-east", Owner: "cleo", Move: 1, Status: control.Refused, Reason: "stale", By: "m", At: clk.Now().UTC(),
	}))
	publish(t, c, subject.Decisions("placement"), encode(control.Decision{
		Version: 1, Kind: control.Placement, Window: w(1), Mode: control.Act, Reasons: []control.Reason{{Code: "NoRoom", Owner: "cleo"}},
		Commands: []control.CommandRef{{Scope: "us-east", Epoch: 2, Moves: 1}}, Policy: "sha256:00", State: "sha256:00",
	}))
	await(func() bool { return o.windows == 1 && len(o.done) == 2 })
	if at := o.at(); at["us-east"] != 2 || at["eu-west"] != 1 {
		t.Errorf("owners %v", at)
	}
	for _, x := range []struct {
		part    float64
		at      time.Time
		decided time.Time
	}{{0.3, time.Unix(1001, 0), w(0).End}, {0.6, time.Unix(1002, 0), w(1).End}} {
		if at, decided := o.arrival(owners, "us-east", x.part); !at.Equal(x.at) || !decided.Equal(x.decided) {
			t.Errorf("%v of them came at %v by the window to %v, expected %v, %v", x.part, at, decided, x.at, x.decided)
		}
	}
	if n, bytes, others := o.moved(); n != 1 || bytes != 77 || len(others) != 1 || others[control.Refused] != 1 {
		t.Errorf("%d moves, %d bytes, others %v", n, bytes, others)
	}
	if what, why := o.decision(); what != "1 move, in the window to 00:16:40 UTC" || why != "NoRoom 1" {
		t.Errorf("decision %q, because %q", what, why)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func publish(t *testing.T, c *bus.Client, to string, body []byte) {
	t.Helper()
	if _, err := c.JS.Publish(t.Context(), c.Subject(to), body); err != nil {
		t.Fatal(err)
	}
}

// TestConfigurations: entry points reach the other sites over links, everybody else
// where they are.
func TestConfigurations(t *testing.T) {
	w := world(20)
	var at addresses
	var list []string
	for i := range at.count(len(w.Regions)) {
		list = append(list, fmt.Sprintf("127.0.0.1:%d", 1000+i))
	}
	at.fill(list, len(w.Regions))
	mesh, err := links.Connect(zerolog.Nop(), links.Between, w.places(at.entries)...)
	if err != nil {
		t.Fatal(err)
	}
	defer mesh.Close()
	l := &Live{Dir: t.TempDir(), Window: 10 * time.Second, Policy: "tmatch"}
	f, err := l.write(w, &at, mesh, rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		t.Fatal(err)
	}
	serve, err := config.Load(f.serve)
	if err != nil {
		t.Fatal(err)
	}
	if p := serve.Placement; p.Window.Std() != 10*time.Second || p.Policy != "tmatch" || serve.Telemetry.Listen != at.serve || serve.Redirector.Listen != at.redirector {
		t.Errorf("%+v", serve)
	}
	listens := map[string]bool{}
	for i, r := range w.Regions {
		e, err := config.Load(f.entries[i])
		if err != nil {
			t.Fatal(err)
		}
		listens[e.Entry.Listen], listens[e.Telemetry.Listen] = true, true
		for j, s := range e.Sites {
			if serve.Sites[j].URL != "http://"+at.entries[j] || s.Servers[0] != "http://"+at.services[j] || s.Store != serve.Sites[j].Store {
				t.Errorf("%+v, %+v", s, serve.Sites[j])
			}
			over, err := mesh.Address(r.Name, s.Name)
			if err != nil || s.URL != "http://"+over || (s.URL == serve.Sites[j].URL) != (i == j) {
				t.Errorf("%s reaches %s at %s, %v", r.Name, s.Name, s.URL, err)
			}
		}
	}
	if len(listens) != 6 {
		t.Errorf("entry points listen at %v", listens)
	}
}
