package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/rs/zerolog"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/infra/clock"
	"penstock/infra/objectstore"
	"penstock/infra/objectstore/dir"
	"penstock/pipeline/config"
	"penstock/schemas/control"
	"penstock/schemas/subject"
	"penstock/schemas/window"
)

const sites = `
sites:
  - {name: a, lat: 10, lon: 20, capacity: 10MB/h, store: "dir:unused/a"}
  - {name: b, lat: 40, lon: 3, capacity: 20MB/h, store: "dir:unused/b"}
  - {name: d, lat: 50, lon: 9, capacity: 20MB/h, store: "dir:unused/d"}
placement: {cooldown: 3h, headroom: 0.05}
`

func read(t *testing.T, text string) *config.Config {
	t.Helper()
	c, err := config.Read("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// find returns the findings of an area about a thing.
func find(r *Report, area, what string) []Finding {
	var out []Finding
	for _, f := range r.Findings {
		if f.Area == area && f.What == what {
			out = append(out, f)
		}
	}
	return out
}

// want checks that there is one finding of that verdict whose text or hint says
// something.
func want(t *testing.T, r *Report, area, what string, v Verdict, says string) {
	t.Helper()
	for _, f := range find(r, area, what) {
		if f.Verdict == v && strings.Contains(f.Text+" "+f.Hint, says) {
			return
		}
	}
	t.Errorf("no finding %s %s: %s that says %q in\n%s", v, area, what, says, printed(t, r))
}

func printed(t *testing.T, r *Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.Print(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestConfigurations(t *testing.T) {
	for name, c := range map[string]struct {
		text, area, what string
		verdict          Verdict
		says             string
	}{
		"a good one":         {sites, "configuration", "file", Fine, "3 sites"},
		"no key":             {sites, "configuration", "privacy.user_key", Broken, "serve refuses"},
		"nowhere":            {"sites: [{name: a, lat: 0, lon: 0, capacity: 1MB/h}]", "configuration", "site a", Look, "Gulf of Guinea"},
		"one spot":           {"sites: [{name: a, lat: 1, lon: 2, capacity: 1MB/h}, {name: b, lat: 1, lon: 2, capacity: 1MB/h}]", "configuration", "site b", Look, "is where site a is"},
		"a wrong unit":       {"sites: [{name: a, lat: 1, lon: 2, capacity: 1KB/h}, {name: b, lat: 9, lon: 2, capacity: 10MB/h}]", "capacity", "site a", Look, "unit"},
		"no room to empty":   {"sites: [{name: a, lat: 1, lon: 2, capacity: 1MB/h}, {name: b, lat: 9, lon: 2, capacity: 2MB/h}]", "capacity", "site b", Look, "evacuated"},
		"no headroom":        {"sites: [{name: a, lat: 1, lon: 2, capacity: 1MB/h}]", "configuration", "placement.headroom", Look, "last byte"},
		"no cooldown":        {"placement: {policy: tmatch}\nsites: [{name: a, lat: 1, lon: 2, capacity: 1MB/h}]", "configuration", "placement.cooldown", Look, "back and forth"},
		"bound to one site":  {sites + "residency: [{match: x, sites: [a]}]", "configuration", "residency[0]", Look, "at a only"},
		"a rule behind all":  {sites + "residency: [{match: \"*\", sites: [a, b]}, {match: x, sites: [a, b]}]", "configuration", "residency[1]", Look, "never reached"},
		"kinds of no effect": {sites + "servers: {server_cost: 9}", "configuration", "file", Look, "servers steers nothing: there are no classes"},
		"nothing to split":   {sites + "split: {history: 9}", "configuration", "file", Look, "no components"},
	} {
		t.Run(name, func(t *testing.T) {
			want(t, Run(t.Context(), Options{Config: read(t, c.text), Serve: true}), c.area, c.what, c.verdict, c.says)
		})
	}
	good := Run(t.Context(), Options{Config: read(t, sites+"privacy: {user_key: k}"), Serve: true})
	if good.Count(Broken)+good.Count(Look) != 0 {
		t.Errorf("a good configuration has findings:\n%s", printed(t, good))
	}
}

// onBus runs the looks over a bus that the test has prepared; it stays open.
func onBus(t *testing.T, b *bus.Bus, o Options) *Report {
	t.Helper()
	o.Bus = func(ctx context.Context) (*bus.Bus, error) {
		return bus.Open(ctx, bus.Options{URL: b.URL(), Name: "doctor", Logger: zerolog.Nop()})
	}
	return Run(t.Context(), o)
}

func listening(o *bus.Options) { o.Listen = "127.0.0.1:0" }

func TestAHealthyBus(t *testing.T) {
	r := onBus(t, bustest.Start(t, listening), Options{})
	want(t, r, "bus", "streams", Fine, "as they should be")
	want(t, r, "permissions", "publish events", Fine, "allowed")
	want(t, r, "permissions", "write locations", Fine, "allowed")
	want(t, r, "clock", "this machine", Fine, "apart")
	want(t, r, "decisions", "placement", Look, "nothing was decided yet")
	want(t, r, "bus", "replicas", Look, "single server")
	if r.Count(Broken) != 0 {
		t.Errorf("a healthy bus is broken:\n%s", printed(t, r))
	}
}

// TestNothingIsStored guards that asking for permissions leaves no message.
func TestNothingIsStored(t *testing.T) {
	b := bustest.Start(t, listening)
	onBus(t, b, Options{})
	c, err := b.Client(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range subject.Streams {
		st, err := c.State(t.Context(), name)
		if err != nil || st.Msgs != 0 || st.LastSeq != 0 {
			t.Errorf("%s holds %d messages up to %d, %v", name, st.Msgs, st.LastSeq, err)
		}
	}
}

func TestAClockThatIsWrong(t *testing.T) {
	b := bustest.Start(t, listening)
	for skew, v := range map[time.Duration]Verdict{5 * time.Second: Look, -time.Minute: Broken} {
		r := onBus(t, b, Options{Clock: clock.NewManual(time.Now().Add(skew))})
		want(t, r, "clock", "this machine", v, "NTP")
	}
}

// TestAUserThatMayNotPublish runs against a server that lets this user read and
// ask only.
func TestAUserThatMayNotPublish(t *testing.T) {
	ns, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, JetStreamMaxStore: 1 << 40, JetStreamMaxMemory: 1 << 30, StoreDir: t.TempDir(), NoLog: true, NoSigs: true,
		Users: []*server.User{
			{Username: "all", Password: "p"},
			{Username: "reader", Password: "p", Permissions: &server.Permissions{
				Publish:   &server.SubjectPermission{Allow: []string{"$JS.API.>"}},
				Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>"}},
			}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	go ns.Start()
	t.Cleanup(func() { ns.Shutdown(); ns.WaitForShutdown() })
	if !ns.ReadyForConnections(bustest.Timeout) {
		t.Fatal("the server does not answer")
	}
	at := func(user string) string { return strings.Replace(ns.ClientURL(), "nats://", "nats://"+user+":p@", 1) }
	b, err := bus.Open(t.Context(), bus.Options{URL: at("all"), Name: "test", Logger: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(b.Init(t.Context()), b.Close()); err != nil {
		t.Fatal(err)
	}
	r := Run(t.Context(), Options{Timeout: 3 * time.Second, Bus: func(ctx context.Context) (*bus.Bus, error) {
		return bus.Open(ctx, bus.Options{URL: at("reader"), Name: "doctor", Logger: zerolog.Nop()})
	}})
	want(t, r, "permissions", "publish events", Look, "not allowed")
	want(t, r, "permissions", "write operator switches", Look, "not allowed")
	want(t, r, "bus", "streams", Fine, "as they should be")
}

func TestABusThatIsNotThere(t *testing.T) {
	r := Run(t.Context(), Options{Timeout: 3 * time.Second, Bus: func(ctx context.Context) (*bus.Bus, error) {
		return bus.Open(ctx, bus.Options{URL: "nats://127.0.0.1:1", Name: "doctor", Logger: zerolog.Nop()})
	}})
	want(t, r, "bus", "server", Broken, "address")
}

func TestStreamsThatAreMissing(t *testing.T) {
	b := bustest.Start(t, listening)
	r := Run(t.Context(), Options{Bus: func(ctx context.Context) (*bus.Bus, error) {
		return bus.Open(ctx, bus.Options{URL: b.URL(), Prefix: "other", Name: "doctor", Logger: zerolog.Nop()})
	}})
	want(t, r, "bus", "streams", Broken, "penstock init")
	want(t, r, "bus", "streams", Broken, "stream other_EVENTS: stream: have none, want one")
}

// TestAStoppedBus: what an embedded bus held in memory is no loss.
func TestAStoppedBus(t *testing.T) {
	dir := t.TempDir()
	open := func(ctx context.Context) (*bus.Bus, error) {
		return bus.Open(ctx, bus.Options{Dir: dir, Purpose: bus.Replay, Name: "doctor", Logger: zerolog.Nop()})
	}
	b, err := open(t.Context())
	if err == nil {
		err = errors.Join(b.Init(t.Context()), b.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	want(t, Run(t.Context(), Options{Bus: open}), "bus", "streams", Fine, "as they should be")
}

func TestTrafficAgainstCapacity(t *testing.T) {
	for name, c := range map[string]struct {
		volumes map[[2]string]int64
		what    string
		verdict Verdict
		says    string
	}{
		"all fits":       {map[[2]string]int64{{"x", "a"}: 5e6, {"y", "b"}: 1e6}, "all sites", Fine, "can be taken"},
		"a site is over": {map[[2]string]int64{{"x", "a"}: 6e6, {"y", "a"}: 6e6}, "site a", Look, "busiest window"},
		"little room":    {map[[2]string]int64{{"x", "a"}: 10e6, {"y", "b"}: 18e6, {"z", "d"}: 18e6}, "all sites", Look, "little room"},
		"beyond all":     {map[[2]string]int64{{"x", "a"}: 40e6, {"y", "b"}: 40e6}, "all sites", Broken, "no placement"},
		"a giant":        {map[[2]string]int64{{"x", "b"}: 21e6}, `owner "x"`, Broken, "more than any site"},
		"another site":   {map[[2]string]int64{{"x", "c"}: 1}, "site c", Look, "does not name"},
	} {
		t.Run(name, func(t *testing.T) {
			var l load
			l.site = map[string]int64{}
			l.add(table(c.volumes))
			x := examination{Options: Options{Config: read(t, sites)}}
			x.compare(&l)
			want(t, &x.report, "capacity", c.what, c.verdict, c.says)
		})
	}
}

func table(volumes map[[2]string]int64) *window.Table {
	b := window.NewTable(window.Traffic)
	for k, n := range volumes {
		b.Key("owner").Append(k[0])
		b.Key("site").Append(k[1])
		b.Start = append(b.Start, 0)
		for i, v := range b.Rollup.Values {
			if v.Name != "bytes" {
				b.Ints[i] = append(b.Ints[i], 1)
				continue
			}
			b.Ints[i] = append(b.Ints[i], n)
		}
	}
	return b
}

// failing is a store whose writes fail, or that is away.
type failing struct {
	objectstore.Store
	away, read error
	barrier    bool
}

func (f failing) Stat(ctx context.Context, owner string) (objectstore.Mark, error) {
	if f.away != nil {
		return objectstore.Mark{}, f.away
	}
	return f.Store.Stat(ctx, owner)
}

func (f failing) Mark(ctx context.Context, owner string, from, to objectstore.Mark) error {
	if f.read != nil {
		return f.read
	}
	return f.Store.Mark(ctx, owner, from, to)
}

func (f failing) Capabilities() objectstore.Capabilities {
	return objectstore.Capabilities{Barrier: f.barrier}
}

func TestStores(t *testing.T) {
	away, read := errors.New("no route to host"), errors.New("read-only file system")
	good, err := dir.Open(t.TempDir(), dir.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	look := func(s objectstore.Store, readOnly bool) *Report {
		return Run(t.Context(), Options{Config: readOf(t), ReadOnly: readOnly, Stores: func(context.Context, *bus.Client) (map[string]objectstore.Store, func() error, error) {
			return map[string]objectstore.Store{"a": s}, func() error { return nil }, nil
		}})
	}
	want(t, look(good, false), "stores", "store of a", Fine, "can be written to")
	want(t, look(failing{Store: good, away: away}, false), "stores", "store of a", Broken, "no route to host")
	want(t, look(failing{Store: good, read: read}, false), "stores", "store of a", Broken, "read-only")
	want(t, look(failing{Store: good}, false), "stores", "store of a", Look, "no write barrier")
	r := look(failing{Store: good, read: read, barrier: true}, true)
	if r.Count(Broken) != 0 {
		t.Errorf("a look that makes nothing has tried to write:\n%s", printed(t, r))
	}
	n := 0
	if err := good.Owners(t.Context(), func(string, objectstore.Mark) error { n++; return nil }); err != nil || n != 0 {
		t.Errorf("%d owners are left in the store, %v", n, err)
	}
}

func readOf(t *testing.T) *config.Config { return read(t, sites) }

// TestAnOwnerOfThatName guards data that somebody keeps under the probe's name.
func TestAnOwnerOfThatName(t *testing.T) {
	s, err := dir.Open(t.TempDir(), dir.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), probe, "x", strings.NewReader("mine"), objectstore.Mark{}); err != nil {
		t.Fatal(err)
	}
	r := Run(t.Context(), Options{Config: readOf(t), Stores: func(context.Context, *bus.Client) (map[string]objectstore.Store, func() error, error) {
		return map[string]objectstore.Store{"a": s}, func() error { return nil }, nil
	}})
	want(t, r, "stores", "store of a", Broken, "is taken")
	in, err := s.Open(t.Context(), probe, "x")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if b, err := io.ReadAll(in); string(b) != "mine" {
		t.Errorf("the data is %q, %v", b, err)
	}
}

func TestAFolderThatIsNotWritable(t *testing.T) {
	dir := t.TempDir()
	x := examination{Options: Options{State: dir}}
	x.disk()
	if len(x.report.Findings) != 1 || x.report.Findings[0].Area != "disk" {
		t.Errorf("got %v", x.report.Findings)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("the folder holds %v, %v", left, err)
	}
}

func TestDecisionsThatFellBack(t *testing.T) {
	b := bustest.Start(t, listening)
	c, err := b.Client(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	d := fmt.Sprintf(`{"version":1,"kind":"placement","window":{"start":"2026-01-01T00:00:00Z","end":"2026-01-01T01:00:00Z"},"mode":"advise","case":"minimal",`+
		`"reasons":[],"commands":[],"operator":{"mode":"act"},"policy":"sha256:%064d","state":"sha256:%064d"}`, 0, 0)
	if _, err := c.Publish(t.Context(), bus.Msg{Subject: subject.Decisions(string(control.Placement)), Data: []byte(d)}); err != nil {
		t.Fatal(err)
	}
	kv, err := c.KV(t.Context(), subject.OperatorKV)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kv.Put(t.Context(), control.ModeKey(control.Placement), []byte(`{"version":1,"mode":"act","at":"2026-01-01T00:00:00Z"}`)); err != nil {
		t.Fatal(err)
	}
	want(t, onBus(t, b, Options{}), "decisions", "placement", Broken, "operator set act")
}

// TestWindowsOfAnotherWidth: a bus that was made for other windows than the
// configuration has is named before serve refuses to start.
func TestWindowsOfAnotherWidth(t *testing.T) {
	b := bustest.Start(t, func(o *bus.Options) { o.Partitions, o.Window, o.Listen = 1, 10*time.Minute, "127.0.0.1:0" })
	want(t, onBus(t, b, Options{Config: read(t, sites)}), "bus", "placement.window", Broken, "1h, and the bus was made for windows of 10m")
	for _, f := range onBus(t, b, Options{Config: read(t, strings.Replace(sites, "placement: {", "placement: {window: 10m, ", 1))}).Findings {
		if f.What == "placement.window" {
			t.Errorf("windows as they should be: %+v", f)
		}
	}
}
