package report

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	"penstock/consumers/executor/serverswitch"
	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/infra/lease"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// TestWhoIsGone: of those that have answered a table of servers one of which nothing is heard
// is gone, and the server switch that acts is not, however long ago its answer was.
func TestWhoIsGone(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	c := bustest.Client(t, b)
	put := func(subj string, v any) {
		t.Helper()
		body, err := control.Encode(v)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Publish(t.Context(), bus.Msg{Subject: subj, Data: body}); err != nil {
			t.Fatal(err)
		}
	}
	put(subject.Commands(string(control.Servers), "a"), control.Command{
		Version: 1, Kind: control.Servers, Scope: "a", Epoch: 1, Window: splitWindow(0), Mode: control.Act, TTL: "10m", Reason: control.Reason{Code: "FirstTable"},
		Servers: &control.ServersTable{On: []string{"10.0.0.1:80"}, Off: []string{}, ZoneWeights: map[string]float64{"a": 1}},
	})
	for by, target := range map[string]string{"entry": "dispatcher", "switch": control.SwitchTarget, "other": control.SwitchTarget} {
		put(subject.Outcomes(string(control.Servers), "a"), control.Outcome{
			Version: 1, Kind: control.Servers, Scope: "a", Epoch: 1, Status: control.Done, By: by, Target: target, At: time.Now().Add(-time.Minute),
		})
	}
	l, err := lease.New(lease.Options{Client: c, Key: serverswitch.LeaseKey("a"), Holder: "switch"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	holds, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- l.Run(ctx, func(ctx context.Context) error {
			close(holds)
			<-ctx.Done()
			return nil
		})
	}()
	select {
	case <-holds:
	case <-time.After(time.Minute):
		t.Fatal("the lease is nobody's")
	}
	table, err := TableOf(t.Context(), c, control.Servers, "a")
	if err != nil {
		t.Fatal(err)
	}
	gone := map[string]bool{}
	for _, r := range table.Routers {
		gone[r.By] = r.Gone
	}
	if !maps.Equal(gone, map[string]bool{"entry": true, "switch": false, "other": true}) || table.Acting != "switch" {
		t.Errorf("gone are %v, %s acts", gone, table.Acting)
	}
	var text strings.Builder
	printTables(&text, control.Servers, []TableStatus{*table})
	if !strings.Contains(text.String(), "follower entry dispatcher: GONE, nothing is heard of it; last, at ") {
		t.Error(text.String())
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
