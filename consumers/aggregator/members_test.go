package aggregator

import (
	"testing"
	"time"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/infra/clock"
	"penstock/schemas/event"
	"penstock/schemas/window"
)

// TestMembersShareAndTakeOver lets a second process join one that has all four
// partitions: it gets those that the advice gives it, and all once the first has
// left.
func TestMembersShareAndTakeOver(t *testing.T) {
	b := bustest.Start(t, func(o *bus.Options) { o.Partitions = 4 })
	c := bustest.Client(t, b)
	o := Options{Client: bustest.Client(t, b), Group: window.Owners, Owner: "agg-one", FlushEvery: 20 * time.Millisecond}
	stop := start(t, o)
	publish(t, c, mark(event.Barrier, "R", hour, 0, 0, 0, 0))
	owned := func(owner string) func(*window.Commit) bool {
		return func(c *window.Commit) bool { return c.Owner == owner }
	}
	for p := range 4 {
		outputs(t, c, window.Owners, p, owned("agg-one"))
	}
	o.Client, o.Owner = bustest.Client(t, b), "agg-two"
	start(t, o)
	shares := map[string]int{}
	for p := range 4 {
		winner := "agg-one"
		if score("aggregator.owners.agg-two", window.Owners, p) > score("aggregator.owners.agg-one", window.Owners, p) {
			winner = "agg-two"
			outputs(t, c, window.Owners, p, owned(winner))
		}
		shares[winner]++
	}
	if len(shares) != 2 {
		t.Fatalf("shares %v: this test needs other names", shares)
	}
	stop()
	publish(t, c, mark(event.Barrier, "R", 2*hour, 0, 0, 0, 0))
	for p := range 4 {
		if got := outputs(t, c, window.Owners, p, watermarkAt(2*hour)).commit.Owner; got != "agg-two" {
			t.Errorf("partition %d is %s's after it left", p, got)
		}
	}
}

func TestAdviceIsOneForEachPartition(t *testing.T) {
	const partitions = 25
	var all []int
	for p := range partitions {
		all = append(all, p)
	}
	var members []*Members
	for _, owner := range []string{"a", "b", "c"} {
		members = append(members, NewMembers(Options{Group: window.Fast, Owner: owner, Partitions: all, Clock: clock.System()}))
	}
	for _, m := range members {
		if m.Mine(window.Fast, 0) {
			t.Fatal("claims before it has read the bucket")
		}
		m.ready = true
		for _, o := range members {
			m.live[o.self] = heard{member{window.Fast, all}, m.opts.Clock.Now()}
		}
	}
	shares := map[string]int{}
	for p := range partitions {
		n := 0
		for _, m := range members {
			if m.Mine(window.Fast, p) {
				n++
				shares[m.opts.Owner]++
			}
		}
		if n != 1 {
			t.Fatalf("partition %d is advised to %d", p, n)
		}
	}
	if len(shares) != 3 || members[0].Mine(window.Owners, 0) {
		t.Fatalf("shares %v", shares)
	}
}
