package aggregator

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"penstock/consumers/aggregator/ledger"
	"penstock/consumers/aggregator/rollup"
	"penstock/schemas/event"
	"penstock/schemas/window"
)

// script is the pure half of an aggregator, driven by the lines of a golden
// script (testdata/scripts/README.md). A restart goes back to the last flush and
// reads again what came after it.
type script struct {
	t     *testing.T
	out   strings.Builder
	cfg   ledger.Config
	book  *ledger.Ledger
	state rollup.State
	clock int64 // the server's, µs
	seq   uint64

	last   *window.Commit
	unread []func() // messages since the last flush
	quiet  bool
}

// values splits "a=1 b c=2" into a map; what has no value is its own.
func values(fields []string) map[string]string {
	out := map[string]string{}
	for _, f := range fields {
		k, v, ok := strings.Cut(f, "=")
		if !ok {
			v = k
		}
		out[k] = v
	}
	return out
}

func (s *script) duration(text string) int64 {
	d, err := time.ParseDuration(text)
	if err != nil {
		s.t.Fatalf("time %q: %v", text, err)
	}
	return d.Microseconds()
}

func (s *script) number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		s.t.Fatalf("number %q: %v", text, err)
	}
	return n
}

func at(us int64) string {
	if us == window.NullInt {
		return "none"
	}
	return (time.Duration(us) * time.Microsecond).String()
}

// line runs one command.
func (s *script) line(text string) {
	text, rows, _ := strings.Cut(text, " : ")
	f := strings.Fields(text)
	v := values(f[1:])
	switch f[0] {
	case "config":
		idle := int64(0)
		if v["idle"] != "never" {
			idle = s.duration(v["idle"])
		}
		s.cfg = ledger.ConfigOf(v["group"], 0, idle, window.Widths{})
		s.book = ledger.New(s.cfg)
		s.state, _ = rollup.New(v["group"], window.Widths{})
		s.clock = 1_000_000_000
	case "step":
		s.clock += s.duration(f[1])
	case "batch":
		s.batch(s.header(f, v), s.rows(rows), v["body"] == "bad")
	case "mark":
		m := event.Mark{
			Kind: event.MarkKind(f[1]), Run: f[2], Watermark: s.duration(v["wm"]), Upto: []uint64{uint64(s.number(v["upto"]))},
			Dropped: s.dropped(v["dropped"]),
		}
		s.message(func(at ledger.Position) string {
			if !s.book.Mark(at, &m) {
				return string(m.Kind) + " of " + m.Run + ": stale"
			}
			return string(m.Kind) + " of " + m.Run
		})
	case "unreadable":
		s.message(func(at ledger.Position) string {
			s.book.Unreadable(at, s.number(v["rows"]))
			return "unreadable"
		})
	case "publisher":
		s.publisher(f[1], v)
	case "trimmed":
		s.book.Trimmed()
	case "flush":
		s.flush()
	case "restart":
		s.restart()
	case "account":
		fmt.Fprintf(&s.out, "account %s\n", account(s.book.Total()))
	default:
		s.t.Fatalf("no such command: %s", text)
	}
}

func (s *script) header(f []string, v map[string]string) *event.Header {
	h := &event.Header{
		Schema: event.RequestSchema, Run: f[1], Seq: uint64(s.number(f[2])), Watermark: s.duration(v["wm"]),
		Dropped: s.dropped(v["dropped"]),
	}
	if v["malformed"] != "" {
		h.Malformed = s.number(v["malformed"])
	}
	if v["rows"] != "" {
		h.Rows = int(s.number(v["rows"]))
	}
	return h
}

// dropped reads FIRST-LAST;FROM;TO.
func (s *script) dropped(text string) []event.Dropped {
	if text == "" {
		return nil
	}
	p := strings.FieldsFunc(text, func(r rune) bool { return r == '-' || r == ';' })
	return []event.Dropped{{
		First: uint64(s.number(p[0])), Last: uint64(s.number(p[1])), Rows: 1, From: s.duration(p[2]), To: s.duration(p[3]),
	}}
}

// rows reads TIME USER>OWNER@SITE and details, rows apart by |.
func (s *script) rows(text string) *event.Requests {
	b := new(event.Requests)
	for row := range strings.SplitSeq(text, "|") {
		f := strings.Fields(row)
		if len(f) == 0 {
			continue
		}
		r := event.NewRequest(s.duration(f[0]))
		for _, d := range f[1:] {
			s.detail(&r, d)
		}
		b.Append(&r)
	}
	return b
}

func (s *script) detail(r *event.Request, text string) {
	k, v, ok := strings.Cut(text, "=")
	switch {
	case k == "late":
		r.Mark = event.Late
	case k == "future":
		r.Mark = event.Future
	case k == "write":
		r.Op = event.Write
	case k == "bytes":
		r.Bytes = s.number(v)
	case k == "status":
		r.Status = int32(s.number(v))
	case k == "place":
		lat, lon, _ := strings.Cut(v, ",")
		r.Lat, r.Lon = float32(s.number(lat)), float32(s.number(lon))
	case k == "from":
		r.FromComponent, r.FromSite, _ = strings.Cut(v, "@")
	case k == "to":
		r.ToComponent, r.ToSite, _ = strings.Cut(v, "@")
	case k == "wait":
		r.Wait = s.duration(v)
	case k == "service":
		r.Service = s.duration(v)
	case k == "network":
		r.Network = s.duration(v)
	case !ok && strings.Contains(k, ">"):
		who, site, _ := strings.Cut(k, "@")
		r.User, r.Owner, _ = strings.Cut(who, ">")
		r.ToSite = site
	default:
		s.t.Fatalf("no such detail: %s", text)
	}
}

func (s *script) batch(h *event.Header, b *event.Requests, bad bool) {
	if !bad {
		h.Rows = b.Len()
	}
	s.message(func(at ledger.Position) string {
		verdict := s.book.Look(h.Run, h.Seq)
		text := fmt.Sprintf("%s %d: %s", h.Run, h.Seq, verdict)
		switch {
		case verdict == ledger.Duplicate || verdict == ledger.Retired:
			s.book.Skip(at, h)
		case bad:
			s.book.Refuse(at, h)
			text += " undecodable"
		default:
			class := s.book.Take(at, h, b.Time, b.Mark)
			s.book.Exclude(s.state.Add(b, class))
			for _, c := range class {
				text += " " + [...]string{"counted", "late", "quarantined"}[c]
			}
		}
		return text
	})
}

// message gives the books a message and says what came of it.
func (s *script) message(take func(ledger.Position) string) {
	s.seq++
	pos := ledger.Position{Seq: s.seq, Time: s.clock}
	do := func() {
		before := s.book.Watermark()
		text := take(pos)
		if s.quiet {
			return
		}
		if w := s.book.Watermark(); w != before {
			text += "; watermark " + at(w)
		}
		if s.book.Due() {
			text += "; flush due"
		}
		fmt.Fprintln(&s.out, text)
	}
	s.unread = append(s.unread, do)
	do()
}

// publisher sends batches of one row, every so often, in order, but holds each
// hold-th one back; heartbeats are not needed, for it is never silent.
func (s *script) publisher(run string, v map[string]string) {
	type sent struct {
		arrival int64
		seq     uint64
		time    int64
	}
	n, every := s.number(v["batches"]), s.duration(v["every"])
	hold, by := s.number(v["hold"]), s.duration(v["by"])
	var all []sent
	for k := int64(1); k <= n; k++ {
		m := sent{arrival: k * every, seq: uint64(k), time: k * every}
		if k%hold == 0 {
			m.arrival += by
		}
		all = append(all, m)
	}
	slices.SortStableFunc(all, func(a, b sent) int { return int(a.arrival - b.arrival) })
	start := s.clock
	s.quiet = true
	for _, m := range all {
		s.clock = start + m.arrival
		b := s.rows(fmt.Sprintf("%dus ann>bob@east", m.time))
		s.batch(&event.Header{Schema: event.RequestSchema, Run: run, Seq: m.seq, Watermark: m.time - s.duration("1s")}, b, false)
	}
	s.quiet = false
	fmt.Fprintf(&s.out, "%d batches; watermark %s; %s\n", n, at(s.book.Watermark()), account(s.book.Total()))
}

func account(a window.Account) string {
	text := fmt.Sprintf("received %d = counted %d + late %d + duplicate %d + malformed %d + quarantined %d; lost batches %d",
		a.Received, a.Counted, a.Late, a.Duplicate, a.Malformed, a.Quarantined, a.LostBatches)
	if !a.Holds() {
		text += " (DOES NOT HOLD)"
	}
	return text
}

func (s *script) flush() {
	tables := s.state.Tables()
	c := s.book.Commit()
	c.Flush = "F"
	body, err := c.Encode()
	if err != nil {
		s.t.Fatal(err)
	}
	if s.last, err = window.DecodeCommit(body); err != nil {
		s.t.Fatal(err)
	}
	s.unread = nil
	fmt.Fprintf(&s.out, "commit covered %d watermark %s\n", c.Covered, at(c.Watermark))
	fmt.Fprintf(&s.out, "  delta %s\n", account(c.Account))
	for _, w := range c.Windows {
		fmt.Fprintf(&s.out, "  window %s counted %d late %d\n", at(w.Start), w.Counted, w.Late)
	}
	for _, v := range c.Incomplete {
		fmt.Fprintf(&s.out, "  incomplete %s to %s %s %s\n", at(v.From), at(v.To), v.Reason, v.Run)
	}
	if c.Excluded > 0 {
		fmt.Fprintf(&s.out, "  excluded %d\n", c.Excluded)
	}
	for _, r := range c.Runs {
		fmt.Fprintf(&s.out, "  run %s contiguous %d watermark %s", r.Run, r.Contiguous, at(r.Watermark))
		for _, a := range r.Above {
			fmt.Fprintf(&s.out, " above %d-%d", a.First, a.Last)
		}
		for _, g := range r.Gaps {
			fmt.Fprintf(&s.out, " gap %d-%d", g.First, g.Last)
		}
		for _, l := range r.Lost {
			fmt.Fprintf(&s.out, " lost %d-%d", l.First, l.Last)
		}
		for _, m := range r.Marks {
			fmt.Fprintf(&s.out, " awaits %s upto %d", m.Kind, m.Upto)
		}
		if r.Ended {
			s.out.WriteString(" ended")
		}
		s.out.WriteString("\n")
	}
	for _, t := range tables {
		s.table(t)
	}
}

func (s *script) table(t *window.Table) {
	for i := range t.Len() {
		fmt.Fprintf(&s.out, "  %s %s", t.Rollup.Name, at(t.Start[i]))
		for k := range t.Keys {
			fmt.Fprintf(&s.out, " %s=%s", t.Rollup.Keys[k], t.Keys[k].At(i))
		}
		for v, val := range t.Rollup.Values {
			switch {
			case val.Merging == window.Hist:
				h := t.Hists[v][i]
				p99, _ := h.Quantile(0.99)
				fmt.Fprintf(&s.out, " %s:%d samples p99 %s", val.Name, h.Count(), at(p99))
			case val.Kind == window.Float32:
				fmt.Fprintf(&s.out, " %s:%g", val.Name, window.ToFloat32(t.Ints[v][i]))
			case val.Kind == window.Timestamp:
				fmt.Fprintf(&s.out, " %s:%s", val.Name, at(t.Ints[v][i]))
			case t.Ints[v][i] != 0:
				fmt.Fprintf(&s.out, " %s:%d", val.Name, t.Ints[v][i])
			}
		}
		s.out.WriteString("\n")
	}
}

// restart drops all, goes back to the last commit and reads again.
func (s *script) restart() {
	before := s.book.Total()
	s.state, _ = rollup.New(s.cfg.Group, window.Widths{})
	s.book = ledger.New(s.cfg)
	if s.last != nil {
		s.book = ledger.Restore(s.cfg, s.last)
	}
	s.quiet = true
	for _, do := range s.unread {
		do()
	}
	s.quiet = false
	fmt.Fprintf(&s.out, "restarted, read %d again\n", len(s.unread))
	if after := s.book.Total(); after != before {
		s.t.Errorf("account after the restart %+v, before %+v", after, before)
	}
}

// sortedKeys are the keys of a map in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
