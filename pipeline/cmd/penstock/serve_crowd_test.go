package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"penstock/consumers/executor/locations"
	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/infra/objectstore"
	"penstock/infra/publisher"
	"penstock/pipeline/config"
	"penstock/pipeline/topology"
	"penstock/schemas/control"
	"penstock/schemas/event"
	"penstock/schemas/subject"
)

// The places of the sites of configure.
var places = map[string][2]float32{"east": {37.4, -79.8}, "west": {37.8, -122.4}, "north": {47.6, -100.3}}

// crowd is a number of owners who are at one place in each window, and whose
// data wants to be there too.
type crowd struct {
	t      testing.TB
	c      *bus.Client
	p      *publisher.Publisher
	owners int
	at     map[string]string // where each owner's data is served
	window int               // the next one
	rows   int64
	seen   uint64 // sequence of COMMANDS up to the last decision
}

// connect is a client of a bus at an address, for the length of the test.
func connect(t testing.TB, url, prefix string) *bus.Client {
	t.Helper()
	b, err := bus.Open(t.Context(), bus.Options{URL: url, Prefix: prefix, Name: "test", Logger: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() }) // The server may be gone.
	return bustest.Client(t, b)
}

// gather brings a crowd together whose data is in the east.
func gather(t testing.TB, c *bus.Client, owners int) *crowd {
	t.Helper()
	p, err := publisher.New(t.Context(), publisher.Options{Client: c, Entry: "web-1", Run: "crowd", MaxRows: 100, Logger: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = p.Close(ctx) // What a test left undone is of no interest here.
	})
	w := &crowd{t: t, c: c, p: p, owners: owners, at: map[string]string{}}
	for i := range owners {
		w.at[ownerName(i)] = "east"
	}
	return w
}

func ownerName(i int) string { return fmt.Sprintf("owner %d", i) }

// send sends the requests of one window, in which everybody is at a site's
// place, and its barrier. It returns the window's end.
func (w *crowd) send(where ...string) time.Time {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	start := epoch + int64(w.window)*hour
	for i := range w.owners {
		place := places[where[i%len(where)]]
		for j := range 3 {
			r := event.NewRequest(start + int64(3*i+j)*1000)
			r.Owner, r.User = ownerName(i), ownerName(i)
			if j > 0 {
				r.User = fmt.Sprintf("reader %d", (i+3*j)%w.owners) // at the same place as the owner
			}
			r.ToSite, r.Lat, r.Lon, r.Bytes, r.Status = w.at[r.Owner], place[0], place[1], 1000, 200
			if err := w.p.Send(ctx, &r); err != nil {
				w.t.Fatal(err)
			}
			w.rows++
		}
	}
	w.window++
	end := start + hour
	w.p.Horizon(end)
	if err := w.p.Barrier(ctx, end); err != nil {
		w.t.Fatal(err)
	}
	return time.UnixMicro(end).UTC()
}

// decision waits for the record of the window that ends then.
func (w *crowd) decision(end time.Time) (d *control.Decision) {
	w.t.Helper()
	eventually(w.t, "the decision of the window ending "+end.Format(time.RFC3339), func() bool {
		m, err := w.c.Last(w.t.Context(), subject.CommandsStream, subject.Decisions(string(control.Placement)))
		if err != nil {
			return false
		}
		if d, err = control.DecodeDecision(m.Data); err != nil {
			w.t.Fatal(err)
		}
		if d.Window.End.After(end) {
			w.t.Fatalf("the window ending %s is decided already", d.Window.End)
		}
		w.seen = m.Seq
		return d.Window.End.Equal(end)
	})
	return d
}

func moves(d *control.Decision) (n int) {
	for _, c := range d.Commands {
		n += c.Moves
	}
	return n
}

func codes(d *control.Decision) map[string]int64 {
	out := map[string]int64{}
	for _, r := range d.Reasons {
		out[r.Code] += max(r.Count, 1)
	}
	return out
}

// outcomes waits for n answers to moves and counts them by status. Imports stand
// beside them on OUTCOMES and answer none.
func (w *crowd) outcomes(n int) map[control.Status]int {
	w.t.Helper()
	var out map[control.Status]int
	eventually(w.t, fmt.Sprintf("%d outcomes", n), func() bool {
		st, err := w.c.State(w.t.Context(), subject.OutcomesStream)
		if err != nil || st.Msgs < uint64(n) {
			return false
		}
		out = map[control.Status]int{}
		each(w.t, w.c, subject.OutcomesStream, func(m bus.Msg) {
			o, err := control.DecodeOutcome(m.Data)
			if err != nil {
				w.t.Fatal(err)
			}
			if o.Status != control.Imported { // which answers no move
				out[o.Status]++
			}
		})
		return count(out) >= n
	})
	return out
}

func count(by map[control.Status]int) (n int) {
	for _, c := range by {
		n += c
	}
	return n
}

// each reads a stream to its present end.
func each(t testing.TB, c *bus.Client, stream string, f func(m bus.Msg)) {
	t.Helper()
	st, err := c.State(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	if st.Msgs == 0 {
		return
	}
	in, err := c.Read(t.Context(), stream, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	for m := range in.C() {
		f(m)
		if m.Seq >= st.LastSeq {
			return
		}
	}
	t.Fatalf("%s ended: %v", stream, in.Err())
}

// located takes over from the table where each owner's data is served.
func (w *crowd) located() {
	w.t.Helper()
	table, err := locations.Open(w.t.Context(), w.c)
	if err != nil {
		w.t.Fatal(err)
	}
	err = table.List(w.t.Context(), func(owner string, l control.Location) error {
		w.at[owner] = l.Site
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// served is at which sites how many owners are served.
func (w *crowd) served() map[string]int {
	out := map[string]int{}
	for _, site := range w.at {
		out[site]++
	}
	return out
}

// stores opens the stores of a configuration.
func stores(t testing.TB, file string) map[string]objectstore.Store {
	t.Helper()
	cfg, err := config.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	s, err := topology.ConfiguredStores(t.Context(), cfg, nil, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// fill puts data of every owner where it is served.
func (w *crowd) fill(s map[string]objectstore.Store) {
	w.t.Helper()
	for owner, site := range w.at {
		if _, err := s[site].Put(w.t.Context(), owner, "letters/1", bytes.NewReader(content(owner)), objectstore.Mark{}); err != nil {
			w.t.Fatal(err)
		}
	}
}

func content(owner string) []byte { return bytes.Repeat([]byte(owner+"\n"), 100) }

// check looks at what the stores hold: every owner's data is at its site, the
// same as it was written, and nowhere else unless retired copies are allowed.
func (w *crowd) check(s map[string]objectstore.Store, retired bool) {
	w.t.Helper()
	for owner, home := range w.at {
		for site, st := range s {
			list, err := st.List(w.t.Context(), owner)
			switch {
			case errors.Is(err, objectstore.ErrNoOwner):
				if site == home {
					w.t.Errorf("%s has no data at %s", owner, site)
				}
				continue
			case err != nil:
				w.t.Fatal(err)
			case site != home:
				if !retired || list.Mark.State != objectstore.Retired {
					w.t.Errorf("%s, whose data is at %s, has a copy at %s: %s", owner, home, site, list.Mark)
				}
				continue
			}
			r, err := st.Open(w.t.Context(), owner, "letters/1")
			if err != nil {
				w.t.Fatal(err)
			}
			got, err := io.ReadAll(r)
			if err = errors.Join(err, r.Close()); err != nil || !bytes.Equal(got, content(owner)) || !list.Mark.Writable() {
				w.t.Errorf("%s at %s: %d bytes, %s, %v", owner, site, len(got), list.Mark, err)
			}
		}
	}
}
