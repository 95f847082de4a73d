package executor

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/infra/clock"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// handed is a command of a table as a server delivers it, which need not remember that
// it has before.
type handed struct {
	message
	body []byte
	meta jetstream.MsgMetadata
}

func (h *handed) Data() []byte                              { return h.body }
func (h *handed) Metadata() (*jetstream.MsgMetadata, error) { return &h.meta, nil }
func (h *handed) InProgress() error                         { return nil }
func (h *handed) DoubleAck(context.Context) error           { return nil }

// process is an executor of tables without a source.
type process struct {
	x    *Executor
	know map[string]int64
}

// Count keeps who knew.
func (p *process) Count(c Counter, reason string, n int64) {
	if c == AlreadyApplied {
		p.know[reason] += n
	}
}

func begin(t *testing.T, c *bus.Client, name string, now clock.Clock, tables *Tables) *process {
	t.Helper()
	p := &process{know: map[string]int64{}}
	x, err := New(Options{Client: c, Target: tables, Own: true, Role: name, Clock: now, Metrics: p, Logger: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	p.x = x
	return p
}

// TestAnsweredIsNotTakenBack: a table that was done and comes again after a later one, or
// after its ttl, because its acknowledgement was lost, is not answered refused or expired
// then, whoever still knows that it came before; what nobody has answered is.
func TestAnsweredIsNotTakenBack(t *testing.T) {
	t.Parallel()
	c := bustest.Client(t, bustest.Start(t))
	start := time.Now()
	now := clock.NewManual(start)
	tables := func() *Tables {
		return &Tables{Of: control.Split, Name: "router", Put: func(context.Context, *control.Command) error { return nil }}
	}
	first := tables()
	one, two := begin(t, c, "one", now, first), begin(t, c, "two", now, tables())
	var again *process
	outcomes, err := c.Read(t.Context(), subject.OutcomesStream, []string{subject.OutcomesOf("split")}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer outcomes.Close()
	for i, step := range []struct {
		to         **process
		seq, epoch uint64
		times      uint64
		want       string // "" if there is to be no answer
	}{
		{&one, 5, 5, 1, "one 5 done "},
		{&one, 5, 5, 2, "one 5 already-applied "},
		{&one, 6, 6, 1, "one 6 done "},
		{&one, 5, 5, 2, ""},
		{&one, 5, 5, 1, ""}, // from a server that has lost what it delivered
		{&one, 4, 4, 1, "one 4 refused older-epoch"},
		{&one, 7, 5, 1, "one 5 refused older-epoch"}, // another one, of a decider that has lost its state
		{&two, 3, 3, 1, "two 3 done "},
		{&one, 3, 3, 2, "one 3 refused older-epoch"}, // the other's answer is not its own
		{&again, 5, 5, 2, ""},                        // the process was started anew, and knows what is in force
		{&again, 6, 6, 2, "one 6 already-applied "},
		{&again, 2, 2, 2, "one 2 refused older-epoch"},
		{&again, 8, 8, 1, "one 8 done "},
		{nil, 0, 0, 0, ""}, // the ttl is over
		{&again, 8, 8, 1, ""},
		{&again, 6, 6, 2, ""},
		{&again, 9, 9, 1, "one 9 expired "},
	} {
		if step.to == nil {
			now.Advance(time.Hour)
			continue
		}
		if step.to == &again && again == nil {
			again = begin(t, c, "one", now, first)
		}
		body, err := control.Encode(&control.Command{
			Version: 1, Kind: control.Split, Scope: "web", Epoch: step.epoch, Mode: control.Act, TTL: "10m",
			Window: control.Window{Start: start.Add(-time.Minute), End: start},
			Split:  &control.SplitTable{Table: []control.SplitRow{{FromSite: "east", To: "cart", Ratios: []control.SplitRatio{{Site: "east", Share: 1}}}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		msg := &handed{body: body, meta: jetstream.MsgMetadata{NumDelivered: step.times, Timestamp: start}}
		msg.meta.Sequence.Stream = step.seq
		before, err := c.State(t.Context(), subject.OutcomesStream)
		if err != nil {
			t.Fatal(err)
		}
		if err := (*step.to).x.handle(t.Context(), t.Context(), msg); err != nil {
			t.Fatal(i, err)
		}
		after, err := c.State(t.Context(), subject.OutcomesStream)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range bustest.Take(t, outcomes, int(after.LastSeq-before.LastSeq)) {
			o, err := control.DecodeOutcome(m.Data)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprint(o.By, " ", o.Epoch, " ", o.Status, " ", o.Reason))
		}
		if want := slices.DeleteFunc([]string{step.want}, func(s string) bool { return s == "" }); !slices.Equal(got, want) {
			t.Errorf("step %d, command %d of epoch %d: answered %q, want %q", i, step.seq, step.epoch, got, want)
		}
	}
	if one.know["memory"] != 2 || one.know["outcomes"] != 0 || again.know["memory"] != 2 || again.know["outcomes"] != 1 {
		t.Errorf("known: %v, and after the start anew %v", one.know, again.know)
	}
}

// TestAnsweredForgets what came too long ago.
func TestAnsweredForgets(t *testing.T) {
	t.Parallel()
	var a answered
	table := func(n uint64) *command {
		meta := &jetstream.MsgMetadata{}
		meta.Sequence.Stream = n
		return &command{Command: &control.Command{Scope: "web", Epoch: n}, meta: meta}
	}
	for n := range uint64(remembered + 1) {
		a.add(table(n))
		a.add(table(n))
	}
	if a.has(table(0)) || !a.has(table(1)) || !a.has(table(remembered)) || len(a.scopes["web"]) != remembered {
		t.Errorf("%d are remembered", len(a.scopes["web"]))
	}
}
