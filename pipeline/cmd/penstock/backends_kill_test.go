package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/infra/testserver"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// killSteps are where a mover is killed: when a command arrives, after each step
// of a move, and when a copy that moved away was deleted.
var killSteps = []string{
	"command", "planned", "marked", "object", "copied", "held", "fenced", "flipped", "journalled", "settled", "answered", "closed", "deleted",
}

// killed says how a process died.
type killed struct {
	bus, step, from, to string
	resuming            bool // while it finished what the one before it had begun
}

// TestKillMoversOnBackends kills a serving process again and again while owners
// with real data, who are written to all the time, move between sites on stores
// of all kinds, and starts it again each time. In the end every owner has exactly
// one live copy, whole, with every write that was acknowledged, and nobody owes
// anything (P16, P21).
func TestKillMoversOnBackends(t *testing.T) {
	t.Parallel()
	cases, kills := 2, 4
	if whole {
		cases, kills = 5, 10
	}
	var mu sync.Mutex
	var all []killed
	t.Run("on", func(t *testing.T) {
		for n := range cases {
			kind := []string{"a bus elsewhere", "its own bus"}[n%2]
			t.Run(fmt.Sprintf("%s %d", kind, n), func(t *testing.T) {
				if !whole {
					t.Parallel()
				}
				k := &killing{t: t, bus: kind, r: rand.New(rand.NewPCG(5, uint64(n)))}
				k.run(n, kills)
				mu.Lock()
				defer mu.Unlock()
				all = append(all, k.done...)
			})
		}
	})
	table(t, all, cases*kills)
}

// table prints the kills and counts them.
func table(t *testing.T, all []killed, least int) {
	t.Helper()
	by, steps := map[string]int{}, map[string]int{}
	var text strings.Builder
	for i, d := range all {
		from, to := kindOf(d.from), kindOf(d.to)
		by[from]++
		if to != from {
			by[to]++
		}
		steps[d.step]++
		fmt.Fprintf(&text, "%3d  %-15s  %-10s  %-11s → %-11s  %s\n", i+1, d.bus, d.step, d.from, d.to, map[bool]string{true: "while resuming"}[d.resuming])
	}
	t.Logf("%d kills:\n%sby backend: %v\nby step: %v", len(all), text.String(), by, steps)
	if len(all) < least {
		t.Errorf("%d kills, expected %d", len(all), least)
	}
	for _, b := range backends {
		if want := max(2, least/5); by[b] < want {
			t.Errorf("%s took part in %d kills of %d, expected at least %d", b, by[b], least, want)
		}
	}
}

// kindOf is the kind of a site's store.
func kindOf(site string) string { return site[:strings.IndexByte(site, '-')] }

// killing is one course of kills.
type killing struct {
	t    *testing.T
	bus  string
	r    *rand.Rand
	e    *estate
	w    *crowd
	args []string // of serve
	url  string   // of the bus
	// want is where each owner's data is once all moves are done.
	want     map[string]string
	moves    int       // that were decided
	due      time.Time // end of the last window, while its decision was not seen
	dueMoves int       // that it must have
	// acked answers when the bus has all that the last window is of. A process that is
	// killed by that window's first command may take its bus with it before.
	acked <-chan error
	pairs [][2]string
	steps []string
	done  []killed
}

const killOwners = 14

func (k *killing) run(n, kills int) {
	dir := k.t.TempDir()
	k.e = build(k.t, dir, 2, time.Hour)
	k.args = []string{"--config", k.e.config, "--state", filepath.Join(dir, "state"), "--name", "one"}
	k.draw(n * kills)
	s := k.begin()
	ctx, stop := context.WithCancel(k.t.Context())
	var writers sync.WaitGroup
	defer writers.Wait()
	defer stop()
	last := make([]uint64, killOwners)
	for i := range killOwners {
		at := k.w.at[ownerName(i)]
		writers.Go(func() {
			n, err := k.e.follow(ctx, ownerName(i), at)
			if err != nil {
				k.t.Error(err)
			}
			last[i] = n
		})
	}
	s.stop()
	for len(k.done) < kills && !k.t.Failed() {
		k.round()
	}
	// Once more without a kill, so that all that was broken off is moved again.
	if s = k.await(""); !k.settled(s) {
		k.t.Fatalf("the process has ended: %s", s.errs.String())
	}
	k.window(s, k.scatter(nil))
	k.settled(s)
	stop()
	writers.Wait()
	k.check(s, last)
}

// draw shuffles what is to happen: all ordered pairs of kinds, and all steps.
func (k *killing) draw(from int) {
	for _, a := range backends {
		for _, b := range backends {
			k.pairs = append(k.pairs, [2]string{a, b})
		}
	}
	// One seed for all courses: each goes on where the one before has stopped. With
	// this one the first eight kills have all kinds and the most delicate steps.
	fixed := rand.New(rand.NewPCG(7, 549))
	fixed.Shuffle(len(k.pairs), func(i, j int) { k.pairs[i], k.pairs[j] = k.pairs[j], k.pairs[i] })
	k.steps = slices.Clone(killSteps)
	fixed.Shuffle(len(k.steps), func(i, j int) { k.steps[i], k.steps[j] = k.steps[j], k.steps[i] })
	k.pairs = slices.Concat(k.pairs[from%len(k.pairs):], k.pairs[:from%len(k.pairs)])
	k.steps = slices.Concat(k.steps[from%len(k.steps):], k.steps[:from%len(k.steps)])
}

// begin starts the process for the first time and gives the owners their data.
func (k *killing) begin() *server {
	k.t.Helper()
	var c *bus.Client
	if k.bus == "its own bus" {
		k.args = append(k.args, "--listen", testserver.FreeAddress(k.t))
	} else {
		b := bustest.Start(k.t, func(o *bus.Options) { o.Partitions, o.Listen = 2, "127.0.0.1:0" })
		k.args, k.url, c = append(k.args, "--nats", b.URL()), b.URL(), bustest.Client(k.t, b)
	}
	s := serve(k.t, k.args...)
	if c == nil {
		k.url, c = s.bus, connect(k.t, s.bus, "")
	}
	k.e.open(c)
	k.w = gather(k.t, c, killOwners)
	k.w.at = k.scatter(nil)
	k.want = k.w.at
	for owner, site := range k.w.at {
		k.e.fill(site, owner)
	}
	must(k.t, "mode", "placement", "act", "--nats", k.url)
	k.window(s, k.w.at)
	return s
}

// scatter sends every owner to a site of any kind, but those of the map where it
// says. A quarter of them go to the kind that the next kill is to move from.
func (k *killing) scatter(fixed map[string]string) map[string]string {
	out := map[string]string{}
	for i := range killOwners {
		owner := ownerName(i)
		site := k.e.sites[k.r.IntN(len(k.e.sites))]
		if i%4 == len(k.done)%4 {
			site = k.pairs[0][0] + "-1" // All at one: they are to go together.
		}
		if at, ok := fixed[owner]; ok {
			site = at
		}
		out[owner] = site
	}
	return out
}

// window sends the requests of a window and waits for its decision, or for the
// death of the process: with it a bus of its own is gone, and who killed it was the
// first to see the decision.
func (k *killing) window(s *server, to map[string]string) {
	k.t.Helper()
	k.due, k.acked = k.w.offerTo(k.e, to)
	k.dueMoves = 0
	for owner, site := range to {
		if k.w.at[owner] != site {
			k.dueMoves++
		}
	}
	k.moves += k.dueMoves
	k.want = to
	eventually(k.t, "the decision", func() bool { return s.gone() || k.decided() })
}

// sent reports whether the bus has all that was sent.
func (k *killing) sent() bool {
	k.t.Helper()
	select {
	case err := <-k.acked:
		if k.acked = nil; err != nil {
			k.t.Fatal(err)
		}
	default:
	}
	return k.acked == nil
}

// decided looks for the decision of the last window, which must be of as many moves
// as there are owners elsewhere.
func (k *killing) decided() bool {
	k.t.Helper()
	if k.due.IsZero() {
		return true
	}
	m, err := k.w.c.Last(k.t.Context(), subject.CommandsStream, subject.Decisions(string(control.Placement)))
	if err != nil {
		return false
	}
	d, err := control.DecodeDecision(m.Data)
	if err != nil {
		k.t.Fatal(err)
	}
	if !d.Window.End.Equal(k.due) {
		return false
	}
	if moves(d) != k.dueMoves {
		k.t.Fatalf("%d moves, expected %d; reasons %v", moves(d), k.dueMoves, codes(d))
	}
	k.due = time.Time{}
	return true
}

// await starts the process, which is to kill itself at the point, and waits until
// it serves or is gone.
func (k *killing) await(point string) *server {
	k.t.Helper()
	s := startDoomed(k.t, point, append([]string{"serve"}, k.args...)...)
	eventually(k.t, "the process to serve", func() bool { return s.gone() || serving.MatchString(s.out.String()) })
	if m := serving.FindStringSubmatch(s.out.String()); m != nil {
		s.bus, s.telemetry = m[1], m[2]
	}
	return s
}

// gone reports whether the process has ended.
func (s *server) gone() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// settled waits until all moves are answered, and reports false if the process
// dies before.
func (k *killing) settled(s *server) bool {
	k.t.Helper()
	eventually(k.t, "all moves to be answered", func() bool {
		if s.gone() {
			return true
		}
		st, err := k.w.c.State(k.t.Context(), subject.OutcomesStream)
		return err == nil && st.Msgs >= uint64(k.moves) && k.decided() && k.sent()
	})
	if s.gone() {
		return false
	}
	k.w.at = k.want
	return true
}

// round starts the process, moves owners and sees that it kills itself at the
// next point that was drawn: at a step of a move between two kinds. Each fifth
// time there is no new move: it is killed while it takes up what the one before
// had begun.
func (k *killing) round() {
	k.t.Helper()
	kinds, step := k.pairs[0], k.steps[0]
	d := killed{bus: k.bus, step: step}
	if n := len(k.done); n%5 == 3 && !slices.Contains([]string{"command", "closed", "deleted"}, k.done[n-1].step) {
		last := k.done[n-1]
		d.from, d.to, d.step, d.resuming = last.from, last.to, []string{"settled", "answered"}[k.r.IntN(2)], true
		k.die(k.await(d.step+" "+d.from+" "+d.to+":1"), d)
		return
	}
	k.pairs, k.steps = append(k.pairs[1:], kinds), append(k.steps[1:], step)
	var targets map[string]string
	d.from, d.to, targets = k.targets(kinds)
	point := fmt.Sprintf("%s %s %s:%d", step, d.from, d.to, 1+k.r.IntN(min(2, len(targets))))
	if step == "command" {
		point = fmt.Sprintf("command %s:1", d.to)
	}
	s := k.await(point)
	if !k.settled(s) {
		// Others that it had to take up go the same way.
		d.resuming = true
		k.die(s, d)
		return
	}
	k.window(s, k.scatter(targets))
	if step == "deleted" {
		if !k.settled(s) {
			k.t.Fatalf("the process has ended: %s", s.errs.String())
		}
		must(k.t, "purge", "--nats", k.url)
	}
	k.die(s, d)
}

// targets are owners at a site of the first kind, up to four, who are to go to one
// of the second. If nobody is at such a site, they are those of the fullest one.
func (k *killing) targets(kinds [2]string) (from, to string, out map[string]string) {
	at := map[string][]string{}
	for i := range killOwners {
		site := k.want[ownerName(i)]
		at[site] = append(at[site], ownerName(i))
	}
	for _, site := range k.e.sites {
		if better := kindOf(site) == kinds[0]; from == "" || better && kindOf(from) != kinds[0] ||
			better == (kindOf(from) == kinds[0]) && len(at[site]) > len(at[from]) {
			if len(at[site]) > 0 {
				from = site
			}
		}
	}
	to = k.site(kinds[1])
	for to == from {
		to = k.site(kinds[1])
	}
	out = map[string]string{}
	for _, owner := range at[from][:min(4, len(at[from]))] {
		out[owner] = to
	}
	return from, to, out
}

// site draws one of the two sites of a kind.
func (k *killing) site(kind string) string { return fmt.Sprintf("%s-%d", kind, 1+k.r.IntN(2)) }

// die waits for the end of the process, which must be the kill.
func (k *killing) die(s *server, d killed) {
	k.t.Helper()
	k.done = append(k.done, d)
	s.code()
	if w, ok := s.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !w.Signaled() || w.Signal() != syscall.SIGKILL {
		k.t.Fatalf("%+v: the process has ended by itself: %s", d, s.cmd.ProcessState)
	}
}
