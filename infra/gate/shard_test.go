package gate

import (
	"context"
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// TestCountersAgreeWithAPlainOne lets writes come and go in any order and compares
// what settle waits for with a list.
func TestCountersAgreeWithAPlainOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCounters()
		s := c.of("ann")
		type running struct {
			leave func()
			since int
		}
		var all []running
		var waiting []struct {
			since int
			done  chan error
		}
		step := 0
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		defer func() {
			for _, r := range all {
				r.leave()
			}
			for _, w := range waiting {
				<-w.done
			}
		}()
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			step++
			switch rapid.IntRange(0, 2).Draw(t, "what") {
			case 0:
				all = append(all, running{s.leave[s.enter()], step})
			case 1:
				if len(all) > 0 {
					i := rapid.IntRange(0, len(all)-1).Draw(t, "which")
					all[i].leave()
					all = append(all[:i], all[i+1:]...)
				}
			default:
				if len(waiting) == 0 { // One after another, as their turns would have it.
					done := make(chan error, 1)
					go func() { done <- c.settle(ctx, s) }()
					waiting = append(waiting, struct {
						since int
						done  chan error
					}{step, done})
				}
			}
			for len(waiting) > 0 {
				before := 0
				for _, r := range all {
					if r.since < waiting[0].since {
						before++
					}
				}
				select {
				case err := <-waiting[0].done:
					if before > 0 || err != nil {
						t.Fatalf("settled while %d writes of before are running: %v", before, err)
					}
					waiting = waiting[1:]
					continue
				default:
				}
				break
			}
		}
	})
}

func BenchmarkEnter(b *testing.B) {
	k, err := NewKeeper(KeeperOptions{Site: "a", Name: "web-1", link: calm(b.Context())})
	if err != nil {
		b.Fatal(err)
	}
	k.letIn()
	owners := make([]string, 1024)
	for i := range owners {
		owners[i] = fmt.Sprintf("owner-%d@example.com", i)
	}
	for _, held := range []bool{false, true} {
		b.Run(fmt.Sprintf("held=%v", held), func(b *testing.B) {
			if held {
				k.ctx = b.Context()
				k.hold(request{ID: "1", Owner: "another", LeaseMS: 1000})
				defer k.end(request{ID: "1", Owner: "another"}, false)
			}
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for i := 0; pb.Next(); i++ {
					leave, _ := k.Enter(owners[i&1023])
					leave()
				}
			})
		})
	}
}

func TestEnteringAllocatesNothing(t *testing.T) {
	k, err := NewKeeper(KeeperOptions{Site: "a", Name: "web-1", link: calm(t.Context())})
	if err != nil {
		t.Fatal(err)
	}
	k.letIn()
	if n := testing.AllocsPerRun(1000, func() {
		leave, _ := k.Enter("ann@example.com")
		leave()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
