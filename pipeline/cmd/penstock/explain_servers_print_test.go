package main

import (
	"strings"
	"testing"

	"penstock/consumers/decider/servers"
	"penstock/consumers/executor/serverswitch"
	"penstock/pipeline/topology"
)

// TestServersAsTheyArePrinted: what is wanted stands beside what the switch found, and
// queues of which nobody has told are not known.
func TestServersAsTheyArePrinted(t *testing.T) {
	t.Parallel()
	e := &topology.ExplainedServers{Explanation: servers.Explanation{Site: "east", Zones: []servers.ZoneView{{Zone: "z", Weight: 1, Servers: []servers.ServerView{
		{Server: "a:1", State: "on", Slots: 4, Cost: 1}, {Server: "b:1", State: "on", Slots: 4, Cost: 1}, {Server: "c:1", State: "off", Slots: 4, Cost: 1},
	}}}}}
	for _, test := range []struct {
		by   *topology.SwitchStatus
		want string
	}{
		{nil, "z 1 a:1 on ? 4 ? ? ? 1 z 1 b:1 on ? 4 ? ? ? 1 z 1 c:1 off ? 4 ? ? ? 1"},
		{&topology.SwitchStatus{State: serverswitch.SiteState{Servers: []serverswitch.ServerState{
			{Server: "a:1", Phase: serverswitch.Starting, Tries: 4, Failed: true}, {Server: "b:1", Phase: serverswitch.Warming},
		}}}, "z 1 a:1 on failed, starting 4 ? ? ? 1 z 1 b:1 on warming 4 ? ? ? 1 z 1 c:1 off ? 4 ? ? ? 1"},
	} {
		e.Switch = test.by
		var b strings.Builder
		printServerStates(&b, e)
		got := strings.Join(strings.Fields(b.String()), " ")
		const head = "zone weight server wanted found places in service waiting potential penalty cost/s "
		const tail = " no gauges were recorded: what waits and is in service at servers is not known"
		if want := head + test.want + tail; got != want {
			t.Errorf("got %q, expected %q", got, want)
		}
	}
}
