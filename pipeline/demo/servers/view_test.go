package servers

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"penstock/consumers/executor/serverswitch"
	"penstock/infra/clock"
	"penstock/infra/golden"
	"penstock/pipeline/topology"
	"penstock/schemas/control"
)

var t0 = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

// watched is a demonstration of which only what can be seen is there.
func watched() *show {
	d := &Demo{Day: 270 * time.Second, Rate: 75, Policy: "auto", Seed: 1}
	s := &show{Demo: d, phases: day(d.Day), start: t0, clock: clock.NewManual(t0.Add(seconds(125)))}
	s.world = &world{show: s, seer: newObserver(nil)}
	var list []string
	for i := range addressesOf() {
		list = append(list, "127.0.0.1:"+string(rune('a'+i/10))+string(rune('0'+i%10)))
	}
	s.world.at.fill(list)
	return s
}

// seenAt is a look in which every count is n times the same.
func seenAt(n float64) *look {
	l := &look{epoch: 9, late: 3 * n, penalty: 0.4 * n, waited: n}
	phases := []serverswitch.Phase{serverswitch.On, serverswitch.On, serverswitch.Draining, serverswitch.Warming, serverswitch.Off, serverswitch.Unknown}
	for i, p := range phases {
		x := serverLook{phase: p}
		if i < 3 {
			k := float64(3 - i)
			x.queued, x.inService, x.places, x.started, x.answers = k-1, 2*k, workers, 10*k*n, 10*k*n
			x.estimated, x.took, x.failure, x.wait = 1.2*k*n, k*n+0.5*k*n*float64(i), 0.09*float64(i+1), 0.02*k
		}
		l.servers = append(l.servers, x)
	}
	for i := range l.sites {
		l.sites[i] = siteLook{requests: 70 * n, seconds: 10*n + 2*n*float64(i), running: 12, attempts: make([]float64, len(slowness))}
	}
	return l
}

func TestGoldenView(t *testing.T) {
	t.Parallel()
	s := watched()
	scenes := []*scene{s.scene()}
	for i := range 20 {
		s.note(seenAt(float64(i)/2), seconds(115+float64(i)/2))
	}
	s.world.seer.commands = []*control.Command{{
		Epoch: 9, Window: control.Window{End: t0.Add(seconds(118))}, Servers: &control.ServersTable{On: []string{"a", "b"}},
		Reason: control.Reason{Code: "IdleServer", Text: "the others are enough"},
	}}
	text := "server 2 takes 10 times as long, server 1 was killed (kill -9)"
	s.fault.Store(&text)
	scenes = append(scenes, s.scene())
	var out strings.Builder
	for _, c := range scenes {
		for _, line := range append(c.picture(), c.line(), "") {
			out.WriteString(line + "\n")
		}
		for _, line := range c.picture() {
			if utf8.RuneCountInString(line) > 110 {
				t.Errorf("more than 110 columns: %s", line)
			}
		}
	}
	golden.File(t, "view.golden", out.String())
}

// TestLooks read what entry points and the switch tell.
func TestLooks(t *testing.T) {
	t.Parallel()
	s := watched()
	at := &s.world.at
	name := at.sites[0].servers[1]
	text := strings.ReplaceAll(`# HELP penstock_dispatcher_queued x
penstock_dispatcher_queued{kind="static",server="S",site="penstock",zone="penstock"} 3
penstock_dispatcher_queued{kind="dynamic",server="S",site="penstock",zone="penstock"} 1
penstock_dispatcher_queued{kind="dynamic",server="other",site="penstock",zone="penstock"} 100
penstock_dispatcher_places{server="S",site="penstock",zone="penstock"} 3
penstock_dispatcher_answers_total{server="S",site="penstock",zone="penstock"} 7
penstock_dispatcher_estimate_error{of="service",server="S",site="penstock",zone="penstock"} 0.25
penstock_dispatcher_estimate_error{of="wait",server="S",site="penstock",zone="penstock"} 9
penstock_dispatcher_table_epoch{site="penstock"} 4
penstock_entry_request_seconds_count{answer="proxied",site="penstock"} 5
go_goroutines 12
penstock_plain 1.5 1700000000
`, "S", name)
	m, err := parse(strings.NewReader(text), "penstock_")
	if err != nil || m.sum("penstock_plain") != 1.5 || len(m["go_goroutines"]) != 0 {
		t.Fatal(m, err)
	}
	says := &topology.SwitchStatus{State: serverswitch.SiteState{Epoch: 4, Settled: true, Servers: []serverswitch.ServerState{{Server: name, Phase: serverswitch.On}}}}
	var l look
	l.take([2][points]samples{{m, m}, {}}, says, at)
	if x := l.servers[1]; x.queued != 8 || x.places != 6 || x.answers != 14 || x.failure != 0.25 || !x.on() || l.servers[0].on() {
		t.Errorf("%+v", x)
	}
	if !l.settled || l.epoch != 4 || l.sites[0].requests != 10 || l.sites[1].requests != 0 {
		t.Errorf("%+v", l)
	}
	l = look{}
	l.take([2][points]samples{{m, {}}, {}}, says, at)
	if l.settled {
		t.Error("settled, and one entry point has no table")
	}
	l = look{}
	if l.take([2][points]samples{{m, m}, {}}, nil, at); l.settled {
		t.Error("settled without a switch")
	}
	for _, bad := range []string{"penstock_x{a=b} 1", `penstock_x{a="b"`, `penstock_x{a="b"} x`, "penstock_x"} {
		if _, err := parse(strings.NewReader(bad), "penstock_"); err == nil {
			t.Errorf("%s is read", bad)
		}
	}
}

// TestCountsGoOn over the time in which a server is off.
func TestCountsGoOn(t *testing.T) {
	t.Parallel()
	s := watched()
	for i, x := range []serverLook{{started: 10, answers: 9, took: 1}, {}, {started: 4, answers: 12, took: 2}, {started: 6, answers: 15, took: 3}} {
		x.told = x.started
		s.note(&look{servers: []serverLook{x}}, seconds(float64(i)))
	}
	want := []serverLook{{started: 10, answers: 9, took: 1}, {started: 10, answers: 9, took: 1}, {started: 14, answers: 12, took: 2}, {started: 16, answers: 15, took: 3}}
	for i, l := range s.seen() {
		if x := l.servers[0]; x.started != want[i].started || x.answers != want[i].answers || x.took != want[i].took {
			t.Errorf("look %d: %+v, expected %+v", i, x, want[i])
		}
	}
}
