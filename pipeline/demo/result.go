package demo

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"penstock/infra/objectstore"
	"penstock/infra/objectstore/dir"
	"penstock/pipeline/demo/ledger"
	"penstock/pipeline/demo/load"
	"penstock/pipeline/demo/notes"
	"penstock/pipeline/demo/stage"
	"penstock/schemas/control"
	"penstock/schemas/window"
)

// Result is what came of a demonstration.
type Result struct {
	Phases   []Phase        `json:"phases"`
	Trips    []TripResult   `json:"trips"`
	Load     load.Report    `json:"load"`
	Answers  int            `json:"answers"` // requests that were answered as asked
	Hops     [2]int         `json:"hops"`    // answers without a hop, and with one
	Stale    [2]int         `json:"stale"`   // of them those to stale clients
	Moves    int            `json:"moves"`   // done
	Moved    int64          `json:"moved_bytes"`
	Others   map[string]int `json:"other_outcomes,omitempty"` // moves that were not done, by status
	Account  window.Account `json:"account"`
	Books    Books          `json:"books"`
	Broken   []string       `json:"broken"` // promises that were not kept; empty if all were
	Notes    []string       `json:"notes,omitempty"`
	Dir      string         `json:"dir"`
	Duration float64        `json:"duration_s"`
}

// Phase is what the crowd's people saw for a time, from the instant at which each
// request was due.
type Phase struct {
	Name string  `json:"name"`
	Ways []Delay `json:"ways"` // all, then by how the entry point was found
}

// Delay is how long answers took.
type Delay struct {
	Way      string  `json:"way"`
	Requests int     `json:"requests"`
	P50      float64 `json:"p50_ms"`
	P99      float64 `json:"p99_ms"`
	Hop      float64 `json:"hop"` // part of the answers that took a hop
}

// TripResult is a Trip that is over.
type TripResult struct {
	From     string  `json:"from"`
	To       string  `json:"to"`
	Followed bool    `json:"followed"`
	Seconds  float64 `json:"seconds,omitempty"`
	Windows  int     `json:"windows,omitempty"`
}

// Books is what the comparison of the clients' books with the stores says.
type Books struct {
	Owners       int `json:"owners"`
	Sent         int `json:"sent"`
	Acknowledged int `json:"acknowledged"`
	Unanswered   int `json:"unanswered"`
	Found        int `json:"found"`
}

// judge lets everything come to its end and compares what was promised with what
// is there.
func (s *show) judge(ctx context.Context) (*Result, error) {
	r := &Result{Load: s.load, Dir: s.Dir, Others: map[string]int{}, Broken: []string{}, Duration: s.clock.Now().Sub(s.start).Seconds()}
	if err := stage.Operate(ctx, s.client, control.FreezeKey(control.Placement), control.Switch{On: true}); err != nil {
		return nil, err
	}
	if err := s.edge.Stop(); err != nil { // Entry points send what they still have.
		r.broken("what stands before clients did not end well: %v", err)
	}
	audit, err := s.account(ctx)
	if err != nil {
		return nil, err
	}
	for _, g := range audit.Groups {
		if g.Behind > 0 {
			r.broken("the account is not complete: %d messages were not read by group %s", g.Behind, g.Group)
		}
	}
	if err := audit.Err(); !audit.Holds() {
		r.broken("the account does not hold: %v", err)
	}
	r.Account = audit.Groups[0].Total
	if err := s.settle(ctx); err != nil {
		return nil, err
	}
	if err := s.close(); err != nil {
		r.broken("the loop did not end well: %v", err)
	}
	where, err := s.locations(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.compare(ctx, r, where); err != nil {
		return nil, err
	}
	s.measure(r)
	s.promises(r)
	if len(r.Broken) > 0 {
		return r, fmt.Errorf("%w:\n%s", ErrPromise, strings.Join(r.Broken, "\n"))
	}
	return r, nil
}

func (r *Result) broken(format string, args ...any) {
	r.Broken = append(r.Broken, fmt.Sprintf(format, args...))
}

// compare reads the stores and compares them with the books and the locations.
func (s *show) compare(ctx context.Context, r *Result, where map[string]string) error {
	found := map[string][]ledger.Copy{}
	for _, region := range s.world.Regions {
		st, err := dir.Open(s.store(region.Name), dir.Options{})
		if err != nil {
			return err
		}
		err = st.Owners(ctx, func(owner string, m objectstore.Mark) error {
			list, err := notes.All(ctx, st, owner)
			if err != nil {
				return err
			}
			c := ledger.Copy{Site: region.Name, Live: m.Writable()}
			for _, n := range list {
				c.Notes = append(c.Notes, n.ID)
			}
			found[owner] = append(found[owner], c)
			if c.Live && where[owner] != region.Name {
				r.broken("%s is live at %s, and its location says %s", owner, region.Name, where[owner])
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("demo: read what %s holds: %w", region.Name, err)
		}
	}
	v := s.users.books.Check(found)
	r.Books = Books{v.Owners, v.Sent, v.Acknowledged, v.Unknown, v.Found}
	for i, f := range v.Faults {
		if i == maxExamples {
			r.broken("… and %d more of what the stores hold", len(v.Faults)-i)
			break
		}
		r.broken("%s", f)
	}
	return nil
}

// measure asks the samples what the phases were like for the crowd.
func (s *show) measure(r *Result) {
	for _, p := range s.phases {
		out := Phase{Name: p.name}
		for _, w := range append([]Way{-1}, Nearest, Looked, Sent, Stale) {
			in := func(a *load.Sample[kind]) bool {
				return a.Of.crowd && (w < 0 || a.Of.way == w) && !a.Due.Before(p.from) && a.Due.Before(p.to)
			}
			l := s.users.seen.Where(in)
			hops := s.users.seen.Where(func(a *load.Sample[kind]) bool { return in(a) && a.Of.hops > 0 })
			d := Delay{Way: "all", Requests: len(l), P50: ms(l.Quantile(0.5)), P99: ms(l.Quantile(0.99)), Hop: float64(len(hops)) / float64(max(len(l), 1))}
			if w >= 0 {
				d.Way = w.String()
			}
			out.Ways = append(out.Ways, d)
		}
		r.Phases = append(r.Phases, out)
	}
	for hops := range r.Hops {
		r.Hops[hops] = len(s.users.seen.Where(func(a *load.Sample[kind]) bool { return a.Of.hops == hops }))
		r.Stale[hops] = len(s.users.seen.Where(func(a *load.Sample[kind]) bool { return a.Of.hops == hops && a.Of.way == Stale }))
	}
	r.Answers = r.Hops[0] + r.Hops[1]
	var others map[control.Status]int
	r.Moves, r.Moved, others = s.seer.moved()
	for status, n := range others {
		r.Others[string(status)] = n
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// promises are what was promised besides the books and the account's own sums.
func (s *show) promises(r *Result) {
	for _, w := range whats {
		if n := s.users.faults.of(w); n > 0 {
			r.broken("%d %s, such as: %s", n, w, strings.Join(s.users.faults.told(w), "; "))
		}
	}
	for _, t := range s.trips {
		x := TripResult{From: t.From, To: t.To, Followed: !t.Followed.IsZero()}
		if x.Followed {
			x.Seconds, x.Windows = t.Followed.Sub(t.Left).Seconds(), t.Windows
		}
		r.Trips = append(r.Trips, x)
		switch {
		case !x.Followed:
			r.broken("%.0f %% of the crowd's notebooks were not at %s after %d windows", followed*100, t.To, lostAfter)
		case t.Windows > within:
			r.broken("the crowd's notebooks took %d windows to %s, promised are %d", t.Windows, t.To, within)
		}
	}
	if a := r.Account; a.Received < int64(r.Answers) || a.LostBatches > 0 {
		r.broken("%d requests were answered, and the account knows of %d; %d batches are lost", r.Answers, a.Received, a.LostBatches)
	}
}

// String is the result as people read it.
func (r *Result) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "What the crowd saw\thow the entry was found\trequests\tp50\tp99\twith a hop")
	for _, p := range r.Phases {
		name := p.Name
		for _, d := range p.Ways {
			if d.Requests == 0 {
				continue
			}
			fmt.Fprintf(w, "%s\t%s\t%d\t%.0f ms\t%.0f ms\t%.0f %%\n", name, d.Way, d.Requests, d.P50, d.P99, 100*d.Hop)
			name = ""
		}
	}
	_ = w.Flush() // Into memory.
	for _, t := range r.Trips {
		if t.Followed {
			fmt.Fprintf(&b, "From %s to %s: the data followed in %s (%.1f s).\n", t.From, t.To, count(t.Windows, "window"), t.Seconds)
		} else {
			fmt.Fprintf(&b, "From %s to %s: the data did not follow.\n", t.From, t.To)
		}
	}
	fmt.Fprintf(&b, "Moves: %d done, %.1f MB%s.\n", r.Moves, float64(r.Moved)/1e6, others(r.Others))
	fmt.Fprintf(&b, "Requests: %d due, %d sent, at most %.0f ms late; %d answered as asked, %d of them with one hop.\n",
		r.Load.Due, r.Load.Sent, ms(r.Load.MaxLag), r.Answers, r.Hops[1])
	fmt.Fprintf(&b, "Stale clients, during and after the moves: %d answers without a hop, %d with one.\n", r.Stale[0], r.Stale[1])
	fmt.Fprintf(&b, "Writes: %d sent, %d acknowledged, %d unanswered; %d notes in the live copies of %d owners.\n",
		r.Books.Sent, r.Books.Acknowledged, r.Books.Unanswered, r.Books.Found, r.Books.Owners)
	a := r.Account
	fmt.Fprintf(&b, "Account: %d received = %d counted + %d late + %d duplicate + %d malformed + %d quarantined; %d batches lost.\n",
		a.Received, a.Counted, a.Late, a.Duplicate, a.Malformed, a.Quarantined, a.LostBatches)
	if len(r.Broken) == 0 {
		fmt.Fprintln(&b, "All promises kept: no request failed, no acknowledged write is lost or doubled, no answer took more than one hop.")
	}
	fmt.Fprintf(&b, "Configurations, stores and logs are in %s.", r.Dir)
	return b.String()
}

func others(by map[string]int) string {
	var out []string
	for status, n := range by {
		out = append(out, fmt.Sprintf(", %d %s", n, status))
	}
	slices.Sort(out)
	return strings.Join(out, "")
}
