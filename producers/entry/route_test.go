package entry_test

import (
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"penstock/producers/entry"
	"penstock/producers/entry/upstream"
	"penstock/schemas/event"
)

// late is a pool that is made later.
type late struct{ atomic.Pointer[upstream.Pool] }

func (l *late) Do(r *http.Request, observe func(*upstream.Attempt)) (*http.Response, *upstream.Attempt, error) {
	return l.Load().Do(r, observe)
}

// store is the service of a site: it has the data of some owners and says of the
// others where it believes they are.
type store struct {
	mu    sync.Mutex
	site  string
	has   map[string]bool
	moved map[string]word
	calls int
	last  http.Header
}

func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	owner, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/u/"), "/")
	s.mu.Lock()
	s.calls++
	s.last = r.Header.Clone()
	has, to := s.has[owner], s.moved[owner]
	s.mu.Unlock()
	w.Header().Set("Penstock-Secret", "of the service")
	if !has {
		if to.site != "" {
			w.Header().Set("Penstock-Site", to.site)
			if to.version > 0 {
				w.Header().Set("Penstock-Version", fmt.Sprint(to.version))
			}
		}
		w.WriteHeader(http.StatusMisdirectedRequest)
		return
	}
	b, _ := io.ReadAll(r.Body)
	w.Header().Set("Server-Timing", "app;dur=3")
	fmt.Fprintf(w, "%s has %s %s", s.site, owner, b)
}

func (s *store) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// world is three sites with their entry points.
type world struct {
	points map[string]*point
	stores map[string]*store
}

func newWorld(t testing.TB, change func(site string, o *entry.Options)) *world {
	w := &world{points: map[string]*point{}, stores: map[string]*store{}}
	names := []string{"a", "b", "c"}
	peers := map[string]*late{}
	for _, n := range names {
		peers[n] = &late{}
		w.stores[n] = &store{site: n, has: map[string]bool{}, moved: map[string]word{}}
	}
	for _, n := range names {
		w.points[n] = run(t, []string{service(t, w.stores[n].ServeHTTP)}, func(o *entry.Options) {
			o.Site, o.PeerKey = n, []byte("0123456789abcdef")
			o.Sites = nil
			for _, s := range names {
				o.Sites = append(o.Sites, entry.Site{Name: s, URL: "http://" + s + ".example", Peer: peers[s]})
			}
			if change != nil {
				change(n, o)
			}
		})
	}
	for _, n := range names {
		peers[n].Store(pool(t, "peer-"+n, w.points[n].url))
	}
	return w
}

func (a answer) about() string {
	return fmt.Sprintf("%d %s v%s hops %s", a.StatusCode, a.Header.Get("Penstock-Site"), a.Header.Get("Penstock-Version"), a.Header.Get("Penstock-Hops"))
}

func TestARequestIsForwardedToWhereTheDataIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.stores["c"].has["ada"] = true
	for _, p := range w.points {
		p.places.set("ada", "c", 4)
	}
	got := do(t, "PUT", w.points["a"].url+"/u/ada/x", strings.NewReader("data"), "X-User", "bob & co", "Penstock-Peer", "guess", "Penstock-Owner", "root")
	if got.about() != "200 c v4 hops 1" || got.body != "c has ada data" {
		t.Errorf("got %s %q", got.about(), got.body)
	}
	for name := range got.Header {
		if name == "Penstock-Secret" || name == "Penstock-Server" || name == "Server-Timing" && got.Header.Get(name) != "app;dur=3" {
			t.Errorf("header %s: %s", name, got.Header[name])
		}
	}
	row := w.points["a"].rows.await(t, 1)[0]
	if row.ToSite != "c" || row.ToServer != "a-1" || row.User != "bob & co" || row.Owner != "ada" || row.Service != 3000 || row.Op != event.Write {
		t.Errorf("row %+v", row)
	}
	if n := len(w.points["c"].rows.all); n != 0 {
		t.Errorf("the peer published %d rows", n)
	}
	h := w.stores["c"].last
	for name := range h {
		if strings.HasPrefix(name, "Penstock") {
			t.Errorf("the service got %s", name)
		}
	}
	if f := h.Get("X-Forwarded-For"); f != "127.0.0.1, 127.0.0.1" {
		t.Errorf("X-Forwarded-For %q", f)
	}
}

// The stale entry point a believes b; b's service knows that the data went to c.
func TestAStaleWordIsFollowedInOneHop(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]io.Reader{"without body": nil, "with body": strings.NewReader("hello"), "chunked": io.MultiReader(strings.NewReader("hel"), strings.NewReader("lo"))} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.stores["c"].has["ada"] = true
			w.stores["b"].moved["ada"] = word{"c", 9}
			w.points["a"].places.set("ada", "b", 8)
			got := do(t, "POST", w.points["a"].url+"/u/ada/x", body)
			if got.about() != "200 c v9 hops 1" || body != nil && got.body != "c has ada hello" {
				t.Errorf("got %s %q", got.about(), got.body)
			}
			rows := w.points["a"].rows.await(t, 2)
			if rows[0].ToServer != "" || rows[1].ToServer != "a-1" || rows[0].Status != 421 || rows[0].ToSite != "b" || rows[1].Status != 200 || rows[1].ToSite != "c" || len(rows) != 2 {
				t.Errorf("rows %+v", rows)
			}
			// The word was learnt: the next goes there at once.
			if got := get(t, w.points["a"].url+"/u/ada/x"); got.about() != "200 c v9 hops 1" || w.stores["b"].calls != 1 {
				t.Errorf("then %s, %d calls of b", got.about(), w.stores["b"].calls)
			}
		})
	}
}

// A client with an old address calls a, which had the data until now.
func TestTheSiteThatHadTheDataForwards(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.stores["c"].has["ada"] = true
	w.stores["a"].moved["ada"] = word{"c", 2}
	w.points["a"].places.set("ada", "a", 1)
	if got := get(t, w.points["a"].url+"/u/ada/x"); got.about() != "200 c v2 hops 1" {
		t.Errorf("got %s", got.about())
	}
	// Without a version the word is followed, but not learnt.
	w.stores["a"].moved["bea"], w.stores["b"].has["bea"] = word{"b", 0}, true
	if got := get(t, w.points["a"].url+"/u/bea/x"); got.about() != "200 b v hops 1" {
		t.Errorf("got %s", got.about())
	}
	if site, _, known := w.points["a"].places.Locate("bea"); known {
		t.Errorf("a word without version was learnt: %s", site)
	}
}

func TestAHopIsNotForwarded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.points["b"].places.set("ada", "c", 5)
	hop := []string{"Penstock-Hop", "a", "Penstock-Peer", "0123456789abcdef", "Penstock-Owner", "ada", "Penstock-Version", "5"}
	if got := get(t, w.points["b"].url+"/u/other/x", hop...); got.about() != "421 c v5 hops 0" {
		t.Errorf("got %s", got.about())
	}
	if w.stores["b"].calls+w.stores["c"].calls != 0 {
		t.Error("a service was called")
	}
	// The peer knows more: it is believed, and the word learnt.
	w.stores["b"].has["ada"] = true
	hop[len(hop)-1] = "6"
	got := get(t, w.points["b"].url+"/u/other/x", hop...)
	if site, version, _ := w.points["b"].places.Locate("ada"); site != "b" || version != 6 {
		t.Errorf("learnt %s %d", site, version)
	}
	if got.StatusCode != http.StatusMisdirectedRequest { // the service looks at the path, where "other" is
		t.Errorf("got %s", got.about())
	}
	if got := get(t, w.points["b"].url+"/u/ada/x", hop...); got.about() != "200 b v6 hops 0" || got.Header.Get("Penstock-Server") != "a-1" ||
		!strings.Contains(strings.Join(got.Header["Server-Timing"], ","), "penstock-service;dur=3.000") {
		t.Errorf("got %s %v", got.about(), got.Header)
	}
	if len(w.points["b"].rows.all) != 0 {
		t.Errorf("a hop's answers made rows: %+v", w.points["b"].rows.all)
	}
}

// A peer that doesn't answer is no reason to serve what isn't here.
func TestAPeerThatIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.points["a"].places.set("ada", "b", 8)
	if err := w.points["b"].stop(); err != nil {
		t.Fatal(err)
	}
	if got := get(t, w.points["a"].url+"/u/ada/x"); got.about() != "502 a v hops 0" || w.stores["a"].calls != 0 {
		t.Errorf("got %s", got.about())
	}
	if row := w.points["a"].rows.await(t, 1)[0]; row.Status != 502 || row.ToSite != "b" || row.ToServer != "" {
		t.Errorf("row %+v", row)
	}
}

// Without a key a hop counts from a trusted proxy only.
func TestHopsWithoutAKey(t *testing.T) {
	t.Parallel()
	for _, trusted := range []bool{true, false} {
		w := newWorld(t, func(_ string, o *entry.Options) {
			o.PeerKey = nil
			if trusted {
				o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
			}
		})
		w.stores["b"].has["ada"] = true
		w.points["a"].places.set("ada", "b", 8)
		got := get(t, w.points["a"].url+"/u/ada/x", "X-User", "bob")
		if got.StatusCode != http.StatusOK || got.Header.Get("Penstock-Site") != "b" || got.Header.Get("Penstock-Hops") != "1" {
			t.Errorf("%v: got %s", trusted, got.about())
		}
		// A stranger's request is the peer's own, with a row of its own.
		if n := len(w.points["b"].rows.all); n != map[bool]int{true: 0, false: 1}[trusted] {
			t.Errorf("%v: %d rows of the peer", trusted, n)
		}
	}
}

func TestRedirects(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ string, o *entry.Options) { o.Answer = entry.Redirect })
	w.points["a"].places.set("ada", "c", 4)
	got := do(t, "POST", w.points["a"].url+"/u/ada/x?y=%20&z", strings.NewReader("hello"))
	if got.about() != "307 c v4 hops 0" || got.Header.Get("Location") != "http://c.example/u/ada/x?y=%20&z" {
		t.Errorf("got %s to %s", got.about(), got.Header.Get("Location"))
	}
	row := w.points["a"].rows.await(t, 1)[0]
	if row.Status != 307 || row.ToSite != "a" || row.Owner != "ada" {
		t.Errorf("row %+v", row)
	}
	// What the service says has just gone is forwarded: b may not have heard of it
	// yet, and would send the client back.
	w.stores["a"].moved["bea"], w.stores["b"].has["bea"] = word{"b", 3}, true
	for range 2 {
		if got := get(t, w.points["a"].url+"/u/bea/x"); got.about() != "200 b v3 hops 1" {
			t.Errorf("got %s", got.about())
		}
	}
	// Two slashes in front would make another host of the path.
	if got := get(t, w.points["a"].url+"//u/ada/x"); got.Header.Get("Location") != "http://c.example//u/ada/x" {
		t.Errorf("to %s", got.Header.Get("Location"))
	}
}

// A body that is too large to be kept goes to the client's next attempt.
func TestALargeBodyIsNotSentAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ string, o *entry.Options) { o.Replay = 1000 })
	w.stores["b"].moved["ada"] = word{"c", 9}
	w.points["a"].places.set("ada", "b", 8)
	got := do(t, "POST", w.points["a"].url+"/u/ada/x", strings.NewReader(strings.Repeat("x", 5000)))
	if got.about() != "307 c v9 hops 0" || got.Header.Get("Location") != "http://c.example/u/ada/x" {
		t.Errorf("got %s", got.about())
	}
}

// A 421 that names no site, or none that is configured, is not followed.
func TestOther421s(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ string, o *entry.Options) { o.Hold = -1 })
	if got := get(t, w.points["a"].url+"/u/ada/x"); got.about() != "421 a v hops 0" {
		t.Errorf("got %s", got.about())
	}
	if row := w.points["a"].rows.await(t, 1)[0]; row.Status != 421 || row.ToSite != "a" || row.ToServer != "a-1" {
		t.Errorf("row %+v", row)
	}
	w.stores["a"].moved["bea"] = word{"nowhere", 4}
	if got := get(t, w.points["a"].url+"/u/bea/x"); got.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("got %s", got.about())
	}
}
