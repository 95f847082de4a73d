package bus_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/schemas/subject"
)

// TestPublishTogether: a batch is stored whole or not at all, and its errors say
// what to do instead.
func TestPublishTogether(t *testing.T) {
	t.Parallel()
	c := bustest.Client(t, bustest.Start(t, func(o *bus.Options) { o.Prefix = "P" }))
	kv, err := c.KV(t.Context(), subject.LocationsKV)
	if err != nil {
		t.Fatal(err)
	}
	entries := func(expect string, from, to int) (out []*nats.Msg) {
		for i := from; i < to; i++ {
			m := nats.NewMsg(fmt.Sprintf("$KV.%s.k%d", kv.Bucket(), i))
			m.Header.Set(jetstream.ExpectedLastSubjSeqHeader, expect)
			out = append(out, m)
		}
		return out
	}
	last, err := c.PublishTogether(t.Context(), entries("0", 0, bus.MaxBatch))
	if err != nil || last != bus.MaxBatch {
		t.Fatalf("%d, %v", last, err)
	}
	if e, err := kv.Get(t.Context(), "k7"); err != nil || e.Revision() != 8 {
		t.Errorf("%v, %v, expected revision 8", e, err)
	}
	if _, err := c.PublishTogether(t.Context(), entries("0", 899, 1000)); !errors.Is(err, bus.ErrConflict) {
		t.Errorf("an entry that is there: %v", err)
	}
	if st, err := kv.Status(t.Context()); err != nil || st.Values() != bus.MaxBatch {
		t.Errorf("%d values, %v: a refused batch left something", st.Values(), err)
	}
	outcomes := func(from, to int) (out []*nats.Msg) {
		for i := from; i < to; i++ {
			m := c.Message(bus.Msg{Subject: subject.Outcomes("placement", fmt.Sprint("site", i%3))})
			m.Header = nats.Header{jetstream.MsgIDHeader: {fmt.Sprint(i)}}
			out = append(out, m)
		}
		return out
	}
	if _, err := c.PublishTogether(t.Context(), outcomes(0, 10)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.PublishTogether(t.Context(), outcomes(9, 20)); !errors.Is(err, bus.ErrOneByOne) {
		t.Errorf("a message id that is known: %v", err)
	}
	rejects := []*nats.Msg{c.Message(bus.Msg{Subject: "rejects.late.web"}), c.Message(bus.Msg{Subject: "rejects.late.web"})}
	if _, err := c.PublishTogether(t.Context(), rejects); !errors.Is(err, bus.ErrOneByOne) {
		t.Errorf("a stream without batches: %v", err)
	}
	if _, err := c.PublishTogether(t.Context(), outcomes(30, 31)); !errors.Is(err, bus.ErrOneByOne) {
		t.Errorf("one message: %v", err)
	}
	if _, err := c.PublishTogether(t.Context(), outcomes(40, 941)); !errors.Is(err, bus.ErrTooLarge) {
		t.Errorf("too many: %v", err)
	}
	if st, err := c.State(t.Context(), subject.OutcomesStream); err != nil || st.Msgs != 10 {
		t.Errorf("%d outcomes, %v", st.Msgs, err)
	}
}
