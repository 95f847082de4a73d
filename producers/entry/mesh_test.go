package entry_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"penstock/infra/shares"
	"penstock/producers/entry"
	"penstock/schemas/event"
)

const meshKey = "0123456789abcdef"

// served is a request as a service of a mesh got it.
type served struct {
	at     string // component@site
	method string
	header http.Header
}

// mesh is two or three sites of a service made of web (of clients), shop (public, by
// host) and cart (of the site only).
type mesh struct {
	t      testing.TB
	sites  map[string]*meshSite
	mu     sync.Mutex
	served []served
	answer func(at string, w http.ResponseWriter, r *http.Request) bool // true: it has answered
}

type meshSite struct {
	*point
	shares   *shares.Router
	internal string
}

// newMesh starts sites; change may change an entry point's options before it
// listens.
func newMesh(t testing.TB, names []string, change func(site string, o *entry.Options)) *mesh {
	t.Helper()
	m := &mesh{t: t, sites: map[string]*meshSite{}}
	peers := map[string]*late{}
	for _, n := range names {
		peers[n] = &late{}
	}
	for _, n := range names {
		s := &meshSite{shares: shares.New(shares.Options{})}
		s.point = run(t, []string{service(t, m.at("web@"+n))}, func(o *entry.Options) {
			o.Site, o.PeerKey, o.Sites, o.Shares, o.Internal = n, []byte(meshKey), nil, s.shares, "127.0.0.1:0"
			o.Owner = o.Owner[:1]
			for _, p := range names {
				o.Sites = append(o.Sites, entry.Site{Name: p, URL: "http://" + p + ".example", Peer: peers[p]})
			}
			o.Components = []entry.ComponentRoute{
				{Name: "shop", Hosts: []string{"shop.example", "*.shop.example"}, Public: true, Local: pool(t, "shop", service(t, m.at("shop@"+n)))},
				{Name: "cart", Hosts: []string{"cart.internal"}, Local: pool(t, "cart", service(t, m.at("cart@"+n)))},
				{Name: "web", Hosts: []string{"web.internal"}},
			}
			if change != nil {
				change(n, o)
			}
		})
		if a := s.InternalAddr(); a != nil {
			s.internal = "http://" + a.String()
		}
		m.sites[n] = s
	}
	for _, n := range names {
		peers[n].Store(pool(t, "peer-"+n, m.sites[n].url))
	}
	return m
}

// at is the handler of a component at a site.
func (m *mesh) at(at string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		m.mu.Lock()
		m.served = append(m.served, served{at, r.Method, r.Header.Clone()})
		answer := m.answer
		m.mu.Unlock()
		if answer != nil && answer(at, w, r) {
			return
		}
		b, _ := io.ReadAll(r.Body)
		w.Header().Set("Server-Timing", "app;dur=2")
		fmt.Fprintf(w, "%s %s", at, b)
	}
}

func (m *mesh) answers(f func(at string, w http.ResponseWriter, r *http.Request) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answer = f
}

// callsCart answers with what cart says, which web asks by an internal listener, as a
// service does that hands the mark of a probe on; false if it couldn't be asked.
func callsCart(t testing.TB, c *http.Client, internal string, w http.ResponseWriter, r *http.Request) bool {
	call, err := http.NewRequestWithContext(r.Context(), http.MethodGet, internal+"/items", nil)
	if err != nil {
		t.Error(err)
		return false
	}
	call.Header.Set("Penstock-To", "cart")
	call.Header.Set("Penstock-Component", "web")
	if mark := r.Header["Penstock-Probe"]; mark != nil {
		call.Header["Penstock-Probe"] = mark
	}
	resp, err := c.Do(call)
	if err != nil {
		t.Error(err)
		return false
	}
	defer resp.Body.Close()
	_, _ = io.Copy(w, resp.Body) // what is missing shows
	return true
}

// got returns what services got, and forgets it.
func (m *mesh) got() []served {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.served
	m.served = nil
	return all
}

// counts is got by component@site.
func (m *mesh) counts() map[string]int {
	n := map[string]int{}
	for _, s := range m.got() {
		n[s.at]++
	}
	return n
}

func ratios(sites ...any) (out []shares.Ratio) {
	for i := 0; i < len(sites); i += 2 {
		out = append(out, shares.Ratio{Site: sites[i].(string), Share: sites[i+1].(float64)})
	}
	return out
}

// put brings a table into force at a site.
func (s *meshSite) put(t testing.TB, table shares.Table) {
	t.Helper()
	if _, err := s.shares.Put(t.Context(), table); err != nil {
		t.Fatal(err)
	}
}

// settled fails if requests are still counted at a replica.
func (s *meshSite) settled(t testing.TB, component, site string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r := shares.Replica{Component: component, Site: site}
	if n, err := s.shares.Drain(ctx, r); err != nil {
		t.Errorf("%d requests have not left %v: %v", n, r, err)
	}
	if err := s.shares.Undrain(ctx, r); err != nil {
		t.Error(err)
	}
}

// eventually waits until a condition holds.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

func summary(r event.Request) string {
	return fmt.Sprintf("%s@%s→%s@%s %d", r.FromComponent, r.FromSite, r.ToComponent, r.ToSite, r.Status)
}
