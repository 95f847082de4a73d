package bus_test

import (
	"errors"
	"slices"
	"testing"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/schemas/subject"
)

// TestEach reads what is there of some subjects, from a sequence on or, where that
// is gone, from the first that is left, and ends with the last.
func TestEach(t *testing.T) {
	t.Parallel()
	c := bustest.Client(t, bustest.Start(t))
	stop := errors.New("enough")
	read := func(from uint64, most int, subjects ...string) (seqs []uint64, err error) {
		err = c.Each(testContext(t), subject.EventsStream, subjects, from, func(m bus.Msg) error {
			if seqs = append(seqs, m.Seq); len(seqs) == most {
				return stop
			}
			return nil
		})
		return seqs, err
	}
	expect := func(what string, got []uint64, err, wantErr error, want ...uint64) {
		t.Helper()
		if !slices.Equal(got, want) || !errors.Is(err, wantErr) {
			t.Errorf("%s: %v, %v; expected %v, %v", what, got, err, want, wantErr)
		}
	}
	got, err := read(0, 0, "events.0.a", "events.1.a")
	expect("nothing there", got, err, nil)
	publish(t, c, "events.0.a", 2) // 1, 2
	publish(t, c, "events.1.a", 1) // 3
	publish(t, c, "events.2.a", 1) // 4
	got, err = read(0, 0, "events.0.a", "events.1.a")
	expect("two subjects", got, err, nil, 1, 2, 3)
	got, err = read(2, 0, "events.0.a", "events.1.a")
	expect("from the second on", got, err, nil, 2, 3)
	got, err = read(4, 0, "events.0.a")
	expect("beyond", got, err, nil)
	got, err = read(0, 2, "events.0.a", "events.1.a")
	expect("fn's error", got, err, stop, 1, 2)
	if err := c.Trim(testContext(t), subject.EventsStream, 2); err != nil {
		t.Fatal(err)
	}
	got, err = read(1, 0, "events.0.a", "events.1.a")
	expect("what is left", got, err, nil, 2, 3)
}
