package stage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/pipeline/report"
	"penstock/schemas/control"
	"penstock/schemas/event"
	"penstock/schemas/subject"
	"penstock/schemas/window"
)

// told is an onlooker that ends once it was told of three things.
type told struct {
	mu   sync.Mutex
	all  []string
	done func()
}

func (o *told) add(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all = append(o.all, fmt.Sprintf(format, args...)); len(o.all) == 3 {
		o.done()
	}
}

func (o *told) Decision(d *control.Decision) { o.add("decision %s", d.Reasons[0].Code) }
func (o *told) Command(c *control.Command)   { o.add("command %d", c.Epoch) }
func (o *told) Outcome(x *control.Outcome)   { o.add("outcome %s", x.Status) }

// TestObserve tells an onlooker what the bus has of a kind, and of no other; half a message
// ends it.
func TestObserve(t *testing.T) {
	c := bustest.Client(t, bustest.Start(t))
	send := func(subj string, v any) {
		t.Helper()
		body, broken := v.([]byte)
		if !broken {
			var err error
			if body, err = control.Encode(v); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := c.Publish(t.Context(), bus.Msg{Subject: subj, Data: body}); err != nil {
			t.Fatal(err)
		}
	}
	w := control.Window{Start: time.Unix(0, 0).UTC(), End: time.Unix(10, 0).UTC()}
	of := func(kind control.Kind, site string) {
		send(subject.Decisions(string(kind)), control.Decision{
			Version: 1, Kind: kind, Mode: control.Act, Window: w, Reasons: []control.Reason{{Code: "Of" + site}}, Commands: []control.CommandRef{},
			Operator: control.Operator{Mode: control.Act}, Policy: "sha256:" + fmt.Sprintf("%064d", 1), State: "sha256:" + fmt.Sprintf("%064d", 2),
		})
		send(subject.Outcomes(string(kind), site), control.Outcome{Version: 1, Kind: kind, Scope: site, Epoch: 3, Status: control.Done, By: "x", At: w.End})
	}
	of(control.Servers, "here")
	of(control.Split, "there")
	send(subject.Commands("servers", "here"), control.Command{
		Version: 1, Kind: control.Servers, Scope: "here", Epoch: 3, Mode: control.Act, TTL: "1m", Window: w, Reason: control.Reason{Code: "NewTable"},
		Servers: &control.ServersTable{On: []string{"a"}, Off: []string{}, ZoneWeights: map[string]float64{"z": 1}},
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o := &told{done: cancel}
	besides := errors.New("besides")
	err := Observe(ctx, c, control.Servers, o, func(ctx context.Context) error {
		<-ctx.Done()
		return besides
	})
	slices.Sort(o.all)
	if !errors.Is(err, besides) || !slices.Equal(o.all, []string{"command 3", "decision Ofhere", "outcome done"}) {
		t.Errorf("told %q, %v", o.all, err)
	}
	for _, subj := range []string{subject.Commands("coding", "x"), subject.Decisions("placement"), subject.Outcomes("split", "x")} {
		send(subj, []byte("{"))
	}
	for _, kind := range []control.Kind{control.Coding, control.Placement, control.Split} {
		if err := Observe(t.Context(), c, kind, &told{done: func() {}}); err == nil {
			t.Errorf("%s: half a message was taken", kind)
		}
	}
}

// TestTheAccountIsOfAllThatWasSent: of the rows of all batches, by what the bus itself has.
func TestTheAccountIsOfAllThatWasSent(t *testing.T) {
	c := bustest.Client(t, bustest.Start(t))
	of := func(rows int64) error {
		g := report.GroupAudit{Total: window.Account{Received: rows, Counted: rows - 1, Late: 1}}
		a, err := against(t.Context(), c, &report.Audit{Groups: []report.GroupAudit{g}})
		if a == nil {
			t.Fatal(err)
		}
		return err
	}
	for i, h := range []event.Header{{Rows: 7, Malformed: 2}, {Rows: 4}} {
		h.Schema, h.Run, h.Seq = event.RequestSchema, "run", 1
		if _, err := c.Publish(t.Context(), bus.Msg{Subject: subject.Events(i, "east"), Header: h.Fields(), Data: []byte("x")}); err != nil {
			t.Fatal(err)
		}
	}
	m := event.Mark{Run: "run", Upto: []uint64{1, 1}}
	if _, err := c.Publish(t.Context(), bus.Msg{Subject: subject.Marks("east"), Header: m.Fields()}); err != nil {
		t.Fatal(err)
	}
	if err := of(13); err != nil {
		t.Error(err)
	}
	if err := of(12); !errors.Is(err, ErrAccount) {
		t.Errorf("one is missing: %v", err)
	}
}
