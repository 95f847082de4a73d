package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"penstock/infra/clock"
	"penstock/pipeline/demo/ledger"
	"penstock/pipeline/demo/links"
	"penstock/pipeline/demo/load"
	"penstock/pipeline/demo/notes"
)

// town is three entry points and a redirector that answer as they are told, and
// note what they were asked.
type town struct {
	u     *users
	mu    sync.Mutex
	asked []string
	// answer is what entry points do, by site; redirector says where data is.
	answer  func(site Site, w http.ResponseWriter, r *http.Request)
	data    Site
	control string // Cache-Control of the redirector
	clock   *clock.Manual
}

func newTown(t *testing.T) *town {
	t.Helper()
	w := world(40)
	c := &town{clock: clock.NewManual(time.Unix(1000, 0)), control: "max-age=5"}
	c.answer = func(site Site, rw http.ResponseWriter, r *http.Request) {
		c.reply(rw, r, site, "0", 1000)
	}
	var at addresses
	serve := func(h http.HandlerFunc) string {
		s := httptest.NewServer(h)
		t.Cleanup(s.Close)
		return s.Listener.Addr().String()
	}
	for i := range w.Regions {
		at.entries = append(at.entries, serve(func(rw http.ResponseWriter, r *http.Request) {
			c.note("%s %s%s of %s from %s", r.Method, w.Regions[i].Name, r.URL.Path, r.Header.Get("X-User"), r.Header.Get("X-Forwarded-For"))
			c.answer(Site(i), rw, r)
		}))
	}
	at.redirector = serve(func(rw http.ResponseWriter, r *http.Request) {
		c.note("look %s", r.URL.Path)
		if rest, ok := strings.CutPrefix(r.URL.Path, "/r/"); ok {
			_, rest, _ = strings.Cut(rest, "/")
			http.Redirect(rw, r, "http://"+at.entries[c.data]+"/"+rest, http.StatusTemporaryRedirect)
			return
		}
		rw.Header().Set("Cache-Control", c.control)
		fmt.Fprintf(rw, `{"site":%q}`, w.Regions[c.data].Name)
	})
	mesh, err := links.Connect(zerolog.Nop(), links.Between)
	if err != nil {
		t.Fatal(err)
	}
	c.u = newUsers(w, c.clock, newActs(w, rand.New(rand.NewPCG(1, 1))), mesh, &at)
	t.Cleanup(c.u.close)
	return c
}

func (c *town) note(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, fmt.Sprintf(format, args...))
}

// reply is the answer of a service through an entry point.
func (c *town) reply(w http.ResponseWriter, r *http.Request, served Site, hops string, count int) {
	name := c.u.world.Regions[served].Name
	w.Header().Set("Penstock-Site", name)
	w.Header().Set("Penstock-Hops", hops)
	if r.Method == http.MethodPost {
		var n notes.Note
		if err := json.NewDecoder(r.Body).Decode(&n); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(notes.Written{ID: n.ID, Number: 1, Site: name})
		return
	}
	_ = json.NewEncoder(w).Encode(notes.Page{Site: name, Count: count})
}

// somebody is a person of the crowd who goes a way, with what they would do.
func (c *town) somebody(w Way, write bool) act {
	i := slices.IndexFunc(c.u.world.People, func(p Person) bool { return p.Crowd && p.Way == w })
	return act{who: i, whose: i, write: write, note: "a note"}
}

func TestWaysToAnEntryPoint(t *testing.T) {
	for _, x := range []struct {
		way   Way
		asked []string // by somebody (%n, at the address %h) who is at us-east, about data that is at ap-northeast
	}{
		{Nearest, []string{"POST us-east/u/%n/notes of %n from 198.51.100.%h"}},
		{Stale, []string{"POST eu-west/u/%n/notes of %n from 198.51.100.%h"}},
		{Sent, []string{"look /r/%n/u/%n/notes", "POST ap-northeast/u/%n/notes of %n from 198.51.100.%h"}},
		{Looked, []string{"look /v1/locations/%n", "POST ap-northeast/u/%n/notes of %n from 198.51.100.%h"}},
	} {
		t.Run(x.way.String(), func(t *testing.T) {
			c := newTown(t)
			c.data = 2
			a := c.somebody(x.way, true)
			p := c.u.world.People[a.who]
			k, err := c.u.carryOut(t.Context(), a, "n1", 1)
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for _, s := range x.asked {
				want = append(want, strings.NewReplacer("%n", p.Name, "%h", fmt.Sprint(p.Host)).Replace(s))
			}
			if !slices.Equal(c.asked, want) {
				t.Errorf("asked %q, expected %q", c.asked, want)
			}
			if k.at != 1 || k.way != x.way || !k.crowd || k.hops != 0 {
				t.Errorf("%+v", k)
			}
			if c.u.books.Kept(p.Name) != 1 {
				t.Error("an acknowledged write is not in the books")
			}
		})
	}
}

func TestAHintIsBelievedAsLongAsItSays(t *testing.T) {
	c := newTown(t)
	a := c.somebody(Looked, false)
	look := func(want ...string) {
		t.Helper()
		c.asked = nil
		if _, err := c.u.carryOut(t.Context(), a, "", 0); err != nil {
			t.Fatal(err)
		}
		for i := range c.asked {
			c.asked[i], _, _ = strings.Cut(c.asked[i], "/")
		}
		if !slices.Equal(c.asked, want) {
			t.Errorf("asked %q, expected %q", c.asked, want)
		}
	}
	look("look ", "GET eu-west")
	c.data = 1
	look("GET eu-west")
	c.clock.Advance(5 * time.Second)
	look("GET eu-west")
	c.clock.Advance(time.Millisecond)
	look("look ", "GET us-east")
}

// TestFaultsThatClientsSee are each noted as what they are.
func TestFaultsThatClientsSee(t *testing.T) {
	for _, x := range []struct {
		name   string
		write  bool
		answer func(c *town, w http.ResponseWriter, r *http.Request)
		want   what
		books  ledger.Verdict
	}{
		{"no answer", true, func(*town, http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, failed, ledger.Verdict{Sent: 1, Unknown: 1}},
		{"unavailable", true, func(_ *town, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }, failed, ledger.Verdict{Sent: 1, Unknown: 1}},
		{"refused", true, func(_ *town, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusMisdirectedRequest) }, failed, ledger.Verdict{Sent: 1, Refused: 1}},
		{"not what was asked for", false, func(_ *town, w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }, failed, ledger.Verdict{}},
		{"by nobody", false, func(_ *town, w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") }, failed, ledger.Verdict{}},
		{"two hops", false, func(c *town, w http.ResponseWriter, r *http.Request) { c.reply(w, r, 0, "2", 9) }, detour, ledger.Verdict{}},
		{"hops unsaid", true, func(c *town, w http.ResponseWriter, r *http.Request) { c.reply(w, r, 0, "", 9) }, detour, ledger.Verdict{Sent: 1, Acknowledged: 1}},
		{"another site", false, func(c *town, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Penstock-Hops", "0")
			w.Header().Set("Penstock-Site", "us-east")
			fmt.Fprint(w, `{"site":"eu-west","count":9}`)
		}, misnamed, ledger.Verdict{}},
		{"one note too few", false, func(c *town, w http.ResponseWriter, r *http.Request) { c.reply(w, r, 0, "0", 2) }, overtaken, ledger.Verdict{Sent: 3, Acknowledged: 3}},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := newTown(t)
			c.answer = func(_ Site, w http.ResponseWriter, r *http.Request) { x.answer(c, w, r) }
			a := c.somebody(Nearest, x.write)
			owner := c.u.world.People[a.who].Name
			if x.want == overtaken {
				for i := range 3 {
					c.u.books.Sent(owner, fmt.Sprint(i))
					c.u.books.Acknowledged(owner, fmt.Sprint(i))
				}
			}
			// The same as draw does with what the plan says.
			c.u.acts = &acts{world: c.u.world, rng: rand.New(fixed(x.write)), turn: []int{a.who}, round: a.who + 1}
			c.u.draw(load.Shot{Number: 7, Due: c.clock.Now()})(t.Context())
			for _, w := range whats {
				if n := c.u.faults.of(w); (n == 1) != (w == x.want) {
					t.Errorf("%d %s: %v", n, w, c.u.faults.told(w))
				}
			}
			if (c.u.seen.Len() == 1) != (x.want != failed) {
				t.Errorf("%d samples", c.u.seen.Len())
			}
			v := c.u.books.Check(nil)
			if v.Sent != x.books.Sent || v.Acknowledged != x.books.Acknowledged || v.Refused != x.books.Refused || v.Unknown != x.books.Unknown {
				t.Errorf("%+v, expected %+v", v, x.books)
			}
		})
	}
}

// fixed is a source that makes an act write, or read.
type fixed bool

func (f fixed) Uint64() uint64 {
	if f {
		return 1 << 60 // a sixteenth of the range
	}
	return 15 << 60
}

func TestARunThatIsGivenUpFailsNoRequest(t *testing.T) {
	c := newTown(t)
	ctx, cancel := context.WithCancel(t.Context())
	c.answer = func(_ Site, _ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // Only then a server sees its client leave.
		cancel()
		<-r.Context().Done()
	}
	c.u.draw(load.Shot{Due: c.clock.Now()})(ctx)
	if c.u.faults.of(failed) != 0 || c.u.seen.Len() != 0 {
		t.Errorf("%d failed, %d answered", c.u.faults.of(failed), c.u.seen.Len())
	}
}

func TestMaxAge(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"": 0, "no-store": 0, "max-age=7": 7 * time.Second, "private, max-age=60, must-revalidate": time.Minute, "max-age=-1": 0, "max-age=x": 0,
	} {
		if got := maxAge(text); got != want {
			t.Errorf("%q: %v, expected %v", text, got, want)
		}
	}
}

func TestOnlySomeFaultsAreTold(t *testing.T) {
	var f faults
	for i := range 20 {
		f.add(detour, "%d", i)
	}
	if f.of(detour) != 20 || !slices.Equal(f.told(detour), []string{"0", "1", "2", "3", "4"}) || f.of(failed) != 0 {
		t.Errorf("%d: %q", f.of(detour), f.told(detour))
	}
}

// TestNamesNeedNoEscape: what stands in a path is the owner's name.
func TestNamesNeedNoEscape(t *testing.T) {
	for _, p := range world(300).People {
		if url.PathEscape(p.Name) != p.Name {
			t.Errorf("%q", p.Name)
		}
	}
}
