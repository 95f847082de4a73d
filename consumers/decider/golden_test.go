package decider

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"penstock/consumers/panes"
	"penstock/infra/clock"
	"penstock/infra/golden"
	"penstock/schemas/control"
	"penstock/schemas/window"
)

// script runs one golden script against the loop's pure part and the toy policy,
// without a bus. Each line is a command; what was decided follows in lines that
// begin with "> ".
//
//	start MODE                         a new decider with that default mode
//	set KEY JSON                       the operator writes a switch
//	delete KEY
//	window N OWNER:REQUESTS … [lost]   window N closes and is decided
//	answer STATUS [OWNER …]            outcomes for the last window's moves, in
//	                                   order, or for those owners
//	import OWNER SITE VERSION          the operator says where an owner's data is
//	snapshot                           the state goes through a snapshot
//	trim                               what may be trimmed of each scope
type script struct {
	t        *testing.T
	d        *Decider
	entries  map[string]control.Entry
	revision uint64
	seq      uint64
	moves    []control.Move
	out      strings.Builder
}

func TestGoldenScripts(t *testing.T) {
	golden.Marked(t, "testdata/*.script", "> ", func(t *testing.T) func(string) string {
		s := &script{t: t}
		return func(line string) string {
			s.out.Reset()
			s.run(strings.Fields(line))
			return s.out.String()
		}
	})
}

func (s *script) say(format string, args ...any) { fmt.Fprintf(&s.out, format+"\n", args...) }

func (s *script) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *script) run(words []string) {
	switch words[0] {
	case "start":
		p, err := toyFactory(0)(breaking.bytes())
		s.must(err)
		s.d = &Decider{
			opts: Options{Mode: control.Mode(words[1]), Clock: clock.System(), Metrics: none{}},
			kind: control.Placement, ttl: "24h", policy: p, config: "sha256:c", state: state{Epochs: map[string]uint64{}},
		}
		s.entries, s.revision, s.seq = map[string]control.Entry{}, 0, 0
	case "set":
		s.revision++
		s.entries[words[1]] = control.Entry{Key: words[1], Value: []byte(strings.Join(words[2:], " ")), Revision: s.revision}
	case "delete":
		s.revision++
		delete(s.entries, words[1])
	case "window":
		s.window(words[1:])
	case "answer":
		s.answer(control.Status(words[1]), words[2:])
	case "import":
		v, err := strconv.ParseUint(words[3], 10, 64)
		s.must(err)
		s.tell(&control.Outcome{Version: 1, Kind: control.Placement, Scope: words[2], Owner: words[1], Move: v, Status: control.Imported})
	case "snapshot":
		s.snapshot()
	case "trim":
		for _, scope := range baseConfig.Sites {
			if seq, found := s.d.state.Answers.oldest(scope); found {
				s.say("%s waits for answers to %d", scope, seq)
			}
		}
		s.say("%d moves unanswered", s.d.state.Answers.unanswered())
	default:
		s.t.Fatalf("unknown command %q", words[0])
	}
}

func (s *script) window(words []string) {
	n, err := strconv.ParseInt(words[0], 10, 64)
	s.must(err)
	w := &panes.Window{Start: n * hour, End: (n + 1) * hour, Tables: map[string]*window.Table{}}
	t := window.NewTable(window.Traffic)
	for _, f := range words[1:] {
		if f == "lost" {
			w.Incomplete = []window.Interval{{From: w.Start, To: w.Start + 1, Reason: "lost"}}
			continue
		}
		owner, requests, _ := strings.Cut(f, ":")
		r, err := strconv.ParseInt(requests, 10, 64)
		s.must(err)
		t.Append(w.Start, []string{owner, "east"}, []int64{r, r, 0, 10 * r, 0})
	}
	if t.Len() > 0 {
		w.Tables["traffic"] = t
	}
	var entries []control.Entry
	for _, e := range s.entries {
		entries = append(entries, e)
	}
	d := s.d
	in := d.state.inputs(control.SwitchesOf(control.Placement, entries), s.revision, d.opts.Mode, len(w.Incomplete) > 0)
	dec, err := d.ask(w, in)
	s.must(err)
	s.moves = nil
	for _, part := range divide(dec.commands) {
		s.seq++
		d.sent(dec, part, s.seq)
		s.seq += uint64(len(part))
	}
	d.state.decided(dec, in, d.state.Record)
	s.say("%s", strings.Replace(string(dec.body), dec.record.State, "sha256:…", 1))
	for _, c := range dec.commands {
		s.say("%s %s", c.Scope, c.body)
		s.moves = append(s.moves, c.Placement.Moves...)
	}
}

func (s *script) answer(status control.Status, owners []string) {
	for _, m := range s.moves {
		if len(owners) > 0 && !slices.Contains(owners, m.Owner) {
			continue
		}
		o := &control.Outcome{Version: 1, Kind: control.Placement, Scope: m.To, Owner: m.Owner, Move: m.Version, Status: status}
		s.tell(o)
	}
}

func (s *script) tell(o *control.Outcome) {
	if first := s.d.state.Answers.answer(o); !first {
		s.say("nobody waits for %s %s %d", o.Status, o.Owner, o.Move)
	}
	s.d.policy.Apply(o)
}

func (s *script) snapshot() {
	asm := panes.New(panes.Options{Group: window.Owners, Partitions: 1})
	var b bytes.Buffer
	s.must(writeSnapshot(&b, &s.d.state, asm, s.d.policy))
	head, rest, err := openSnapshot(b.Bytes())
	s.must(err)
	p, err := toyFactory(0)(breaking.bytes())
	s.must(err)
	s.must(readSnapshot(head, rest, panes.New(panes.Options{Group: window.Owners, Partitions: 1}), p))
	s.d.policy, s.d.state = p, head.Loop
}
