package bus_test

import (
	"errors"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/schemas/subject"
)

// TestOneQuestionAMessage: a message that is asked for costs one round trip, and
// a stream that was made anew is found again.
func TestOneQuestionAMessage(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	c := bustest.Client(t, b)
	publish(t, c, "events.0.web", 3)
	other := bustest.Client(t, b)
	sub, err := other.NC.SubscribeSync("$JS.API.STREAM.>")
	if err != nil {
		t.Fatal(err)
	}
	if err := other.NC.FlushWithContext(testContext(t)); err != nil {
		t.Fatal(err)
	}
	for seq := range uint64(3) {
		if m, err := c.Get(testContext(t), subject.EventsStream, seq+1); err != nil || m.Seq != seq+1 {
			t.Fatalf("message %d: %+v, %v", seq+1, m, err)
		}
		if m, err := c.Last(testContext(t), subject.EventsStream, "events.0.web"); err != nil || string(m.Data) != "2" {
			t.Fatalf("last: %+v, %v", m, err)
		}
	}
	// Who listens hears of a question a moment before or after its answer is there.
	const asked = 7 // one a message, and one for the handle
	for i := range asked {
		if _, err := sub.NextMsgWithContext(testContext(t)); err != nil {
			t.Fatalf("%d questions for 6 messages, expected one more for the handle: %v", i, err)
		}
	}
	if err := other.NC.FlushWithContext(testContext(t)); err != nil {
		t.Fatal(err)
	}
	if more, _, err := sub.Pending(); err != nil || more != 0 {
		t.Errorf("%d more questions than %d: %v", more, asked, err)
	}

	info, err := c.JS.Stream(testContext(t), c.Stream(subject.EventsStream))
	if err != nil {
		t.Fatal(err)
	}
	cfg := info.CachedInfo().Config
	if err := c.JS.DeleteStream(testContext(t), cfg.Name); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Get(testContext(t), subject.EventsStream, 1); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("of a stream that is gone: %v", err)
	}
	if _, err := c.JS.CreateStream(testContext(t), cfg); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Get(testContext(t), subject.EventsStream, 1); !errors.Is(err, bus.ErrNoMessage) {
		t.Errorf("of an empty stream: %v", err)
	}
	publish(t, c, "events.0.web", 1)
	if m, err := c.Last(testContext(t), subject.EventsStream, "events.0.web"); err != nil || m.Seq != 1 {
		t.Errorf("of the new stream: %+v, %v", m, err)
	}
}
