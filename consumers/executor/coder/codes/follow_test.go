package codes_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"penstock/consumers/executor/coder/codes"
	"penstock/consumers/executor/coder/queue"
	"penstock/infra/clock"
	"penstock/schemas/control"
)

// followed is a chooser that averages over two seconds of a clock that stands still.
func followed(t testing.TB) (*codes.Chooser, *clock.Manual) {
	t.Helper()
	at := clock.NewManual(time.Unix(1000, 0))
	codesOf := control.CodingCodes{K: []float64{0.5}, N: []float64{1, 0.5, 0.1}, RMax: 2}
	c, err := codes.New(codes.Options{
		Default: control.CodingTable{Policy: control.CodingTOFEC, Read: codesOf, Write: codesOf}, Over: 2 * time.Second, Clock: at,
	})
	if err != nil {
		t.Fatal(err)
	}
	return c, at
}

// TestBacklogOverTime: a request counts for as long as it waits, however many arrive, and
// what is past is forgotten by time alone.
func TestBacklogOverTime(t *testing.T) {
	c, at := followed(t)
	is := func(want float64) {
		t.Helper()
		if got := c.State().Backlog; math.Abs(got-want) > 1e-9 {
			t.Fatalf("a backlog of %v, expected %v", got, want)
		}
	}
	is(0)
	at.Advance(time.Hour)
	c.Follows(4)
	c.Arrived(100) // Of no weight.
	is(0)
	at.Advance(2 * time.Second)
	is(2)
	for range 1000 { // At one time.
		c.Follows(9)
		c.Follows(0)
	}
	is(2)
	at.Advance(6 * time.Second)
	is(0.5)
	now := c.State()
	if got := now.Choose(queue.Read, 16); got != (queue.Code{N: 2, K: 1}) {
		t.Errorf("got %+v", got)
	}
	c.Follows(0)
	if got := c.Choose(queue.Read, 16); got != (queue.Code{N: 2, K: 1}) {
		t.Errorf("got %+v", got)
	}
	at.Advance(100 * time.Millisecond)
	c.Follows(0)
	if got := c.Choose(queue.Read, 16); got != (queue.Code{N: 3, K: 2}) {
		t.Errorf("got %+v", got)
	}
}

// TestAverageOfASteadyQueue: whatever the pattern, the average comes to the share of time
// times what waits.
func TestAverageOfASteadyQueue(t *testing.T) {
	c, at := followed(t)
	for range 2000 {
		c.Follows(3)
		at.Advance(5 * time.Millisecond)
		c.Follows(0)
		at.Advance(10 * time.Millisecond)
	}
	if got := c.State().Backlog; math.Abs(got-1) > 0.01 {
		t.Errorf("a backlog of %v, expected 1", got)
	}
}

// TestLookingChangesNothing: the average takes a step from one change of what waits to the
// next, whoever looks in between.
func TestLookingChangesNothing(t *testing.T) {
	seen, at := followed(t)
	unseen, also := followed(t)
	for i := range 100 {
		for _, c := range []*codes.Chooser{seen, unseen} {
			c.Follows(i % 7)
		}
		for range 10 {
			at.Advance(30 * time.Millisecond)
			seen.State()
		}
		also.Advance(300 * time.Millisecond)
	}
	if a, b := seen.State().Backlog, unseen.State().Backlog; a != b {
		t.Errorf("%v with looks, %v without", a, b)
	}
}

func TestTimeBelowZero(t *testing.T) {
	if _, err := codes.New(codes.Options{Default: control.CodingTable{Policy: control.CodingGreedy}, Over: -1}); !errors.Is(err, codes.ErrOptions) {
		t.Errorf("got %v", err)
	}
}

func BenchmarkFollows(b *testing.B) {
	c, err := codes.New(codes.Options{Default: control.CodingTable{
		Policy: control.CodingTOFEC, Read: control.CodingCodes{RMax: 2}, Write: control.CodingCodes{RMax: 2},
	}, Over: codes.Over})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for i := range b.N {
		c.Follows(i & 1)
	}
}
