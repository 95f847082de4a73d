package claims

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"penstock/infra/bus/bustest"
	"penstock/infra/clock"
)

// TestFair deals by hand: 7 places among three are 3, 2, 2; the next server begins with the
// one that comes after.
func TestFair(t *testing.T) {
	t.Parallel()
	servers := []Server{{Name: "a", M: 7}, {Name: "b", M: 1}, {Name: "c", M: 2}, {Name: "d", M: 0}, {Name: "e", M: 3}}
	for rank, want := range [][]int{{3, 0, 1, 0, 1}, {2, 1, 0, 0, 1}, {2, 0, 1, 0, 1}} {
		if got := fair(servers, 3, rank, 0); !reflect.DeepEqual(got, want) {
			t.Errorf("rank %d: got %v, expected %v", rank, got, want)
		}
	}
	for turn, want := range []int{0, 0, 1, 0} {
		if got := fair([]Server{{M: 1}}, 3, 2, int64(turn)); got[0] != want {
			t.Errorf("turn %d: got %d, expected %d", turn, got[0], want)
		}
	}
}

const second = int64(time.Second)

// TestTimesAreTheServers: the row that a write is about has the time of that write, others
// keep theirs; a key is as old as the first write after a gap.
func TestTimesAreTheServers(t *testing.T) {
	t.Parallel()
	value, err := json.Marshal(book{Born: 100 * second, Before: 199 * second, Dispatchers: []row{
		{Name: "b", Instance: "1"},
		{Name: "a", Instance: "2", At: 195 * second},
		{Name: "a", Instance: "1", At: 194*second + 1},
	}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := read(value, 5, 200*second)
	if err != nil {
		t.Fatal(err)
	}
	if r.Born != 100*second || len(r.Dispatchers) != 3 || r.Dispatchers[2].At != 200*second || r.Dispatchers[0].Instance != "1" {
		t.Errorf("got %+v", r)
	}
	others := r.others(&row{Name: "a", Instance: "2"})
	if len(others) != 1 || others[0].Name != "b" {
		t.Errorf("others are %+v, expected b alone: the first was not written for more than 5 s", others)
	}
	if r, err = read(value, 5, 199*second+int64(gap)+1); err != nil || r.Born != r.at {
		t.Errorf("after a gap: born %d, at %d, %v", r.Born, r.at, err)
	}
}

func TestNotABook(t *testing.T) {
	t.Parallel()
	for _, value := range []string{
		``, `[]`, `{"dispatchers":3}`, `{"dispatchers":[{"name":"a","instance":"1"},{"name":"a","instance":"1"}]}`,
	} {
		r, err := read([]byte(value), 7, 3)
		if !errors.Is(err, errBook) || r.number != 7 || r.at != 3 || r.Born != 3 || len(r.Dispatchers) != 0 {
			t.Errorf("%s: got %+v, %v", value, r, err)
		}
	}
	r, err := read([]byte(`{"born":9,"dispatchers":[{"name":"a","at":9,"servers":{"s":{"claim":-1,"in_service":-2,"queued":-3,"potential":-4}}}]}`), 7, 3)
	if err != nil || r.Born != 3 || r.Dispatchers[0].At != 3 || r.Dispatchers[0].Servers["s"] != (Figures{}) {
		t.Errorf("times to come and negative numbers: got %+v, %v", r, err)
	}
	// Claims beyond all bounds are no room for others when they are summed.
	r, err = read([]byte(`{"dispatchers":[{"name":"a","servers":{"s":{"claim":9223372036854775807}}},{"name":"b","servers":{"s":{"claim":9223372036854775807}}}]}`), 7, 3)
	if err != nil {
		t.Fatal(err)
	}
	c := claimant{self: row{Name: "me"}, servers: []Server{{Name: "s", M: 4}}, limits: map[string]int{}}
	if p := c.plan(r); p.free["s"] != 0 || p.next["s"] != 0 {
		t.Errorf("got %+v", p)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"born":1,"before":1,"dispatchers":[{"name":"a","instance":"1","epoch":3,"servers":{"s":{"claim":1}}}]}`), int64(5))
	f.Add([]byte(`{}`), int64(0))
	f.Fuzz(func(t *testing.T, value []byte, at int64) {
		at &= 1<<62 - 1
		r, err := read(value, 1, at)
		if err != nil && (!errors.Is(err, errBook) || len(r.Dispatchers) != 0) {
			t.Fatalf("got %+v, %v", r, err)
		}
		if r.Born > at || r.at != at {
			t.Fatalf("at %d: born %d, at %d", at, r.Born, r.at)
		}
		c := claimant{self: row{Name: "me"}, servers: []Server{{Name: "s", M: 4}}, limits: map[string]int{"s": 9}, grace: time.Second}
		p := c.plan(r)
		c.lower(&p)
		sum := 0
		b := c.book(&p, 1, map[string]Figures{"s": {InService: 9}})
		for _, d := range b.Dispatchers {
			sum += d.Servers["s"].Claim
		}
		// Others may have claimed too much between them; then this one claims nothing.
		if own := c.limits["s"]; own < 0 || own > 4 || sum < 0 || sum > 4 && own > 0 {
			t.Fatalf("limit %d, %d are claimed of 4", own, sum)
		}
	})
}

func TestDrained(t *testing.T) {
	t.Parallel()
	busy := map[string]Figures{"s": {InService: 2}}
	for _, c := range []struct {
		v      View
		detail string
	}{
		{View{}, "not all known"},
		{View{Settled: true}, "no dispatcher"},
		{View{Settled: true, Rows: []Row{{Name: "a", Epoch: 3}, {Name: "b", Epoch: 2}}}, "dispatcher b is at epoch 2"},
		{View{Settled: true, Rows: []Row{{Name: "a", Epoch: 3, Servers: busy}}}, "dispatcher a has 2 in service"},
		{View{Settled: true, Rows: []Row{{Name: "a", Epoch: 3, Age: 4 * time.Second}}}, "dispatcher a said nothing for 4.0 s"},
		{View{Settled: true, Rows: []Row{{Name: "a", Epoch: 3, Age: 3 * time.Second}, {Name: "b", Epoch: 4, Servers: map[string]Figures{"t": {InService: 1}}}}}, ""},
	} {
		drained, detail := c.v.Drained("s", 3)
		if drained != (c.detail == "") || !strings.Contains(detail, c.detail) {
			t.Errorf("%+v: got %v, %q, expected %q", c.v, drained, detail, c.detail)
		}
	}
}

// fixed is a store that is read only.
type fixed struct {
	r   revision
	err error
}

func (f *fixed) read(context.Context) (revision, error)    { return f.r, f.err }
func (f *fixed) write(context.Context, uint64, book) error { return errConflict }
func (f *fixed) remove(context.Context, uint64) error      { return errConflict }

// TestViewerCountsOn: ages grow while nobody writes, until a row counts no more.
func TestViewerCountsOn(t *testing.T) {
	t.Parallel()
	at := 1000 * second
	f := &fixed{r: revision{number: 3, at: at, book: book{Born: at - 10*second, Dispatchers: []row{{Name: "a", At: at - second}, {Name: "b", At: at}}}}}
	c := clock.NewManual(time.Unix(0, 0))
	w := &Viewer{store: f, clock: c}
	look := func() string {
		v, err := w.Look(t.Context())
		if err != nil {
			return "error"
		}
		s := fmt.Sprint(v.Settled)
		for _, r := range v.Rows {
			s += fmt.Sprint(" ", r.Name, r.Age)
		}
		return s
	}
	expect := func(want string) {
		t.Helper()
		if got := look(); got != want {
			t.Errorf("got %q, expected %q", got, want)
		}
	}
	expect("true a1s b0s")
	c.Advance(2 * time.Second)
	expect("true a3s b2s")
	c.Advance(2500 * time.Millisecond)
	expect("true b4.5s")
	f.r.number, f.r.at = 4, at+4*second
	f.r.Dispatchers[1].At = f.r.at
	expect("true a5s b0s") // a counts as long as the server's clock says so
	f.err = errAway
	expect("error")
	f.err, f.r = nil, revision{}
	expect("false")
	f.r = revision{number: 9, at: at + 60*second, book: book{Born: at + 59*second}}
	expect("false")
}

func TestOptionsThatCannotWork(t *testing.T) {
	t.Parallel()
	client := bustest.Client(t, bustest.Start(t))
	whole := func() Options { return Options{Client: client, Name: "a", Site: "s"} }
	for want, change := range map[string]func(*Options){
		"expected Client":  func(o *Options) { o.Client = nil },
		"expected Client,": func(o *Options) { o.Name = "" },
		"every: got":       func(o *Options) { o.Every = 3 * time.Second },
		"patience: got":    func(o *Options) { o.Patience = -1 },
		`the name "x"`:     func(o *Options) { o.Servers = []Server{{Name: "x"}, {Name: "x"}} },
		"an M of -1":       func(o *Options) { o.Servers = []Server{{Name: "x", M: -1}} },
	} {
		o := whole()
		change(&o)
		if _, err := New(o); !errors.Is(err, ErrOptions) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
	if _, err := New(whole()); err != nil {
		t.Error(err)
	}
	if _, err := NewViewer(nil, nil, "s"); !errors.Is(err, ErrOptions) {
		t.Errorf("a viewer of nothing: %v", err)
	}
}
