package writes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"penstock/infra/clock"
	"penstock/infra/objectstore"
	"penstock/infra/objectstore/dir"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// where is a locator of which a test moves the owners.
type where struct {
	names []string
	sites []int
	vers  []uint64
}

func (w *where) Owner(o int32) (string, int, uint64) { return w.names[o], w.sites[o], w.vers[o] }

func (w *where) Apply(owner, to string, version uint64) bool {
	for i, n := range w.names {
		if n == owner {
			w.sites[i], w.vers[i] = map[string]int{"a": 0, "b": 1, "c": 2}[to], version
			return true
		}
	}
	return false
}

type bench struct {
	state string
	sites []Site
	at    *where
}

func setup(t testing.TB, owners ...string) *bench {
	t.Helper()
	b := &bench{state: t.TempDir(), at: &where{names: owners, sites: make([]int, len(owners)), vers: make([]uint64, len(owners))}}
	root := t.TempDir()
	for _, n := range []string{"a", "b", "c"} {
		s, err := dir.Open(filepath.Join(root, n), dir.Options{NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		b.sites = append(b.sites, Site{n, s})
	}
	return b
}

func (b *bench) open(t testing.TB) *Ledger {
	t.Helper()
	l, err := Open(Options{Dir: b.state, Locator: b.at, Sites: b.sites})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func flush(t testing.TB, l *Ledger, end int64) {
	t.Helper()
	if err := l.Flush(context.Background(), end); err != nil {
		t.Fatal(err)
	}
}

func verify(t testing.TB, l *Ledger) VerifyReport {
	t.Helper()
	r, err := l.Verify(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// move does what a mover does, in the end.
func (b *bench) move(t testing.TB, o, to int, version uint64) {
	t.Helper()
	ctx, name, from := context.Background(), b.at.names[o], b.at.sites[o]
	var records []objectstore.Record
	err := b.sites[from].Store.Scan(ctx, name, File, func(n uint64, p []byte) error {
		records = append(records, objectstore.Record{Number: n, Payload: bytes.Clone(p)})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.sites[to].Store.AppendAll(ctx, name, File, records); err != nil {
		t.Fatal(err)
	}
	m, err := b.sites[from].Store.Stat(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	gone := objectstore.Mark{State: objectstore.Retired, Version: version, Site: b.sites[to].Name}
	if err := b.sites[from].Store.Mark(ctx, name, m, gone); err != nil {
		t.Fatal(err)
	}
}

// TestWritesWaitForDataOnItsWay: between the closing of a source and the opening of the
// destination nobody can write; a move that is given up opens the source again.
func TestWritesWaitForDataOnItsWay(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		ends func(b *bench, mark func(site int, to objectstore.Mark))
		site int
		err  error
	}{
		"arrives": {func(_ *bench, mark func(int, objectstore.Mark)) {
			mark(1, objectstore.Mark{State: objectstore.Live, Version: 1})
		}, 1, nil},
		"is given up": {func(b *bench, mark func(int, objectstore.Mark)) {
			mark(0, objectstore.Mark{})
			incoming := objectstore.Mark{State: objectstore.Incoming, Version: 1, By: "m"}
			if err := b.sites[1].Store.Delete(context.Background(), "ann", incoming); err != nil {
				t.Error(err)
			}
		}, 0, nil},
		"never comes": {func(*bench, func(int, objectstore.Mark)) {}, 0, ErrUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, "ann")
			c := clock.NewManual(time.Unix(0, 0))
			l, err := Open(Options{Dir: b.state, Locator: b.at, Sites: b.sites, Clock: c})
			if err != nil {
				t.Fatal(err)
			}
			mark := func(site int, to objectstore.Mark) {
				t.Helper()
				have, err := b.sites[site].Store.Stat(t.Context(), "ann")
				if err == nil {
					err = b.sites[site].Store.Mark(t.Context(), "ann", have, to)
				}
				if err != nil {
					t.Error(err)
				}
			}
			l.Add(0, 5)
			flush(t, l, 1)
			b.move(t, 0, 1, 1)
			mark(1, objectstore.Mark{State: objectstore.Incoming, Version: 1, By: "m"})
			l.Add(0, 6)
			done := make(chan error, 1)
			go func() { done <- l.Flush(t.Context(), 2) }()
			for range 3 {
				if err := c.Await(t.Context(), 1); err != nil {
					t.Fatal(err)
				}
				c.Advance(lookAgain)
			}
			if err := c.Await(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			x.ends(b, mark)
			c.Advance(arrivesWithin)
			if err := <-done; !errors.Is(err, x.err) {
				t.Fatalf("got %v, expected %v", err, x.err)
			}
			if x.err == nil && b.at.sites[0] != x.site {
				t.Errorf("written at %d, expected %d", b.at.sites[0], x.site)
			}
			if r := verify(t, l); x.err == nil && (!r.OK() || r.Records != 2) {
				t.Errorf("got %+v", r)
			}
		})
	}
}

func TestWritesBecomeRecordsWhereTheOwnerIs(t *testing.T) {
	b := setup(t, "ann", "bob/x@y", "cat", "nowhere")
	b.at.sites = []int{0, 1, 2, -1}
	l := b.open(t)
	for i := range 5 {
		l.Add(0, int64(1000+i))
		l.Add(1, 0)
		l.Add(3, 10)
	}
	l.Touch(2)
	flush(t, l, 1)
	l.Add(0, 7)
	flush(t, l, 2)
	r := verify(t, l)
	if !r.OK() || r.Owners != 3 || r.Records != 11 || r.Bytes != 5*1000+10+7 {
		t.Errorf("got %+v", r)
	}
	if s := l.Stats(); s != (Stats{Writes: 11, Bytes: 5017, Unplaced: 5}) {
		t.Errorf("got %+v", s)
	}
	list, err := b.sites[2].Store.List(context.Background(), "cat")
	if err != nil || len(list.Objects) != 1 || list.Objects[0].Size != 0 {
		t.Errorf("cat was only read and has %+v, %v; expected one empty object", list, err)
	}
}

func TestABigWriteIsSeveralRecordsInBoundedMemory(t *testing.T) {
	b := setup(t, "ann")
	l := b.open(t)
	l.Add(0, 9*MaxRecord+5)
	l.Add(0, 3)
	flush(t, l, 1)
	if r := verify(t, l); !r.OK() || r.Records != 11 || r.Bytes != 9*MaxRecord+8 {
		t.Errorf("got %+v", r)
	}
}

// The same run again, from any window and after any part of one, writes the
// same and nothing twice.
func TestAgainAfterACrash(t *testing.T) {
	b := setup(t, "ann", "bob")
	b.at.sites = []int{0, 1}
	window := func(l *Ledger, w int) {
		for i := range 3 + w {
			l.Add(int32(i%2), int64(10*w+i))
		}
	}
	l := b.open(t)
	window(l, 1)
	flush(t, l, 1)
	// Between the windows ann moves to c; nobody tells the second run.
	b.move(t, 0, 2, 1)
	b.at.sites[0], b.at.vers[0] = 2, 1
	window(l, 2)
	ctx, cancel := context.WithCancel(context.Background())
	// A crash after ann's part of the window and before the marker.
	j, _ := l.take(0)
	if _, err := l.append(ctx, j); err != nil {
		t.Fatal(err)
	}
	cancel()

	b.at.sites[0], b.at.vers[0] = 0, 0
	l = b.open(t)
	window(l, 1)
	flush(t, l, 1) // It is marked: nothing is written to ann's old copy.
	if got := l.Stats().Followed; got != 0 {
		t.Errorf("followed %d owners in a window that was written already", got)
	}
	b.at.sites[0], b.at.vers[0] = 2, 1 // The outcome, from the bus.
	window(l, 2)
	flush(t, l, 2)
	if r := verify(t, l); !r.OK() || r.Owners != 2 || r.Retired != 1 {
		t.Errorf("got %+v", r)
	}
}

// Without waiting for outcomes, the ledger may learn of a move from the copy.
func TestWritesFollowDataThatHasMovedOn(t *testing.T) {
	b := setup(t, "ann")
	l := b.open(t)
	l.Add(0, 5)
	flush(t, l, 1)
	b.move(t, 0, 1, 1)
	l.Add(0, 6)
	flush(t, l, 2)
	if b.at.sites[0] != 1 || b.at.vers[0] != 1 || l.Stats().Followed != 1 {
		t.Errorf("the locator says %d, version %d, followed %d", b.at.sites[0], b.at.vers[0], l.Stats().Followed)
	}
	if r := verify(t, l); !r.OK() || r.Records != 2 {
		t.Errorf("got %+v", r)
	}
	gone := objectstore.Mark{State: objectstore.Retired, Version: 2, Site: "z"}
	if err := b.sites[1].Store.Mark(context.Background(), "ann", objectstore.Mark{}, gone); err != nil {
		t.Fatal(err)
	}
	l.Add(0, 7)
	if err := l.Flush(context.Background(), 3); !errors.Is(err, ErrUnreachable) {
		t.Errorf("got %v, expected ErrUnreachable: there is no site z", err)
	}
}

func TestVerifyFindsWhatIsWrong(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		name string
		harm func(b *bench) error
		want string
	}{
		{"other bytes", func(b *bench) error {
			if err := b.sites[0].Store.Delete(ctx, "ann", objectstore.Mark{}); err != nil {
				return err
			}
			_, err := b.sites[0].Store.AppendAll(ctx, "ann", File, []objectstore.Record{{Number: 1, Payload: []byte("abc")}, {Number: 2, Payload: []byte("abcd")}})
			return err
		}, "record 1 holds other bytes"},
		{"a record too many", func(b *bench) error {
			p := make([]byte, 9)
			Fill(p, "ann", 3)
			return objectstore.Append(ctx, b.sites[0].Store, "ann", File, 3, p)
		}, "3 records, 2 were written"},
		{"a gap", func(b *bench) error {
			return objectstore.Append(ctx, b.sites[0].Store, "ann", File, 5, nil)
		}, "record 5 follows record 2"},
		{"gone", func(b *bench) error { return b.sites[0].Store.Delete(ctx, "ann", objectstore.Mark{}) }, "no live copy"},
		{"two live copies", func(b *bench) error { return b.sites[2].Store.Create(ctx, "ann", objectstore.Mark{}) }, "a live copy beside"},
		{"a stranger", func(b *bench) error { return b.sites[1].Store.Create(ctx, "zoe", objectstore.Mark{}) }, "never saw"},
		{"half a move", func(b *bench) error {
			return b.sites[1].Store.Mark(ctx, "ann", objectstore.Mark{State: objectstore.Absent}, objectstore.Mark{State: objectstore.Incoming, Version: 1, By: "m"})
		}, "incoming"},
		{"other sizes", func(b *bench) error {
			if err := b.sites[0].Store.Delete(ctx, "ann", objectstore.Mark{}); err != nil {
				return err
			}
			var rs []objectstore.Record
			for n := uint64(1); n <= 2; n++ {
				p := make([]byte, 3)
				Fill(p, "ann", n)
				rs = append(rs, objectstore.Record{Number: n, Payload: p})
			}
			_, err := b.sites[0].Store.AppendAll(ctx, "ann", File, rs)
			return err
		}, "other sizes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := setup(t, "ann")
			l := b.open(t)
			l.Add(0, 3)
			l.Add(0, 4)
			flush(t, l, 1)
			if r := verify(t, l); !r.OK() {
				t.Fatalf("before the harm: %+v", r)
			}
			if err := c.harm(b); err != nil {
				t.Fatal(err)
			}
			r := verify(t, l)
			if r.Count != 1 || !strings.Contains(r.Faults[0].What, c.want) {
				t.Errorf("got %+v, expected one fault with %q", r, c.want)
			}
		})
	}
}

func TestTheMarkerIsReadOrRefused(t *testing.T) {
	b := setup(t, "ann")
	for _, bad := range []string{"{", `{"version":2,"window_end":1}`, `{}`} {
		if err := os.WriteFile(markerPath(b.state), []byte(bad), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(Options{Dir: b.state, Locator: b.at, Sites: b.sites}); !errors.Is(err, ErrMarker) {
			t.Errorf("%s: got %v, expected ErrMarker", bad, err)
		}
	}
	if err := writeMarker(b.state, 17); err != nil {
		t.Fatal(err)
	}
	if end, err := readMarker(b.state); end != 17 || err != nil {
		t.Errorf("17 came back as %d, %v", end, err)
	}
}

func FuzzMarker(f *testing.F) {
	f.Add([]byte(`{"version":1,"window_end":1473843600000000}`))
	f.Add([]byte(`{"version":1,"window_end":1e300}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := decodeMarker(data); err != nil && !errors.Is(err, ErrMarker) {
			t.Fatalf("%v does not wrap ErrMarker", err)
		}
	})
}

func TestContentFollowsFromOwnerAndNumber(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		owner := rapid.String().Draw(t, "owner")
		number := rapid.Uint64().Draw(t, "number")
		p := make([]byte, rapid.IntRange(1, 70).Draw(t, "size"))
		Fill(p, owner, number)
		if !matches(p, owner, number) {
			t.Fatal("bytes do not match themselves")
		}
		q := bytes.Clone(p)
		q[rapid.IntRange(0, len(q)-1).Draw(t, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		if matches(q, owner, number) {
			t.Fatal("a flipped bit went unseen")
		}
		if len(p) >= 8 && matches(p, owner, number+1) {
			t.Fatal("two numbers have the same bytes")
		}
	})
}

// The paper's day: 2,500 owners with 36,000 records in 24 windows.
func BenchmarkDayAndVerify(b *testing.B) {
	names := make([]string, 2500)
	for i := range names {
		names[i] = fmt.Sprintf("u%04d", i)
	}
	for range b.N {
		w := setup(b, names...)
		for i := range names {
			w.at.sites[i] = i % 3
		}
		l := w.open(b)
		for h := range 24 {
			for i := range 1500 {
				l.Add(int32((i*i+h)%2500), 1000)
			}
			flush(b, l, int64(h+1))
		}
		b.ReportMetric(b.Elapsed().Seconds(), "s-written")
		if r := verify(b, l); !r.OK() {
			b.Fatalf("%+v", r)
		}
	}
}
