package gatewayapi

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"penstock/consumers/executor"
	"penstock/consumers/executor/router/routertest"
	"penstock/infra/shares"
)

var (
	second   = shares.Link{From: routertest.Frontend, FromSite: routertest.East, To: "cart"}
	checkout = shares.Link{From: routertest.Checkout, FromSite: routertest.East, To: routertest.Search}
)

// What the world's cluster has. The rule reports, the backendRef search-canary, the
// other rules' filters, and all labels and annotations are none of ours.
const (
	frontRoute = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  name: front
  namespace: shop
  uid: 5f9c6f1e-0000-4000-8000-000000000001
  labels: {app: front, team: "7"}
  annotations: {note: "weights: by hand, 1e3", big: "123456789012345678901"}
spec:
  parentRefs: [{name: edge}]
  hostnames: [shop.example.com]
  rules:
    - name: reports
      matches: [{path: {type: PathPrefix, value: /reports}}]
      backendRefs: [{name: reports, port: 80, weight: 3}, {name: search-west, port: 8080, weight: 5}]
    - name: search
      matches: [{path: {type: PathPrefix, value: /search}, headers: [{name: from, value: frontend}]}]
      filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: x-a, value: "1"}]}}]
      backendRefs:
        - {name: search-east, port: 8080, weight: 100}
        - {name: search-canary, port: 8080, weight: 0}
        - {name: search-north, port: 8080, weight: 100}
        - {name: search-west, port: 8080, weight: 100, filters: [{type: RequestHeaderModifier, requestHeaderModifier: {remove: [x-b]}}]}
    - name: checkout
      matches: [{path: {type: PathPrefix, value: /search}, headers: [{name: from, value: checkout}]}]
      backendRefs:
        - {name: search-east, port: 8080}
        - {name: search-north, port: 8080}
        - {name: search-west, port: 8080}
`
	cartRoute = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: cart, namespace: shop, uid: 5f9c6f1e-0000-4000-8000-000000000002}
spec:
  parentRefs: [{name: edge}]
  rules:
    - backendRefs: [{name: cart-east, port: 80}, {name: cart-north, port: 80}, {name: cart-west, port: 80}]
`
)

func backends(of string) map[string]Backend {
	all := map[string]Backend{}
	for _, site := range routertest.Sites {
		all[site] = Backend{Name: of + "-" + site}
	}
	return all
}

func routes() []Route {
	return []Route{
		{Namespace: "shop", Name: "front", Rule: "search", Link: routertest.Link, Backends: backends("search")},
		{Namespace: "shop", Name: "cart", Rule: "0", Link: second, Backends: backends("cart")},
		{Namespace: "shop", Name: "front", Rule: "2", Link: checkout, Backends: backends("search")},
	}
}

// world is a target with an API server of its own, and a gateway that splits
// requests as the routes say.
type world struct {
	t      *testing.T
	api    *apiServer
	target *Target
	counts *counts
	folder string

	requests routertest.Requests // by the gateway
}

func newWorld(t *testing.T, edit func(o *Options)) *world {
	t.Helper()
	w := &world{t: t, counts: &counts{n: map[executor.Counter]int64{}}, folder: t.TempDir()}
	w.requests.Weights = w.weights
	w.api = newServer(t, frontRoute, cartRoute)
	for _, of := range []string{"search", "cart"} {
		for _, site := range append([]string{"canary"}, routertest.Sites...) {
			w.api.ready["shop/"+of+"-"+site] = true
		}
	}
	w.api.ready["shop/reports"] = true
	w.api.settle()
	w.token("secret-1")
	w.target = w.open(edit)
	return w
}

// token writes the file of the token.
func (w *world) token(secret string) {
	if err := os.WriteFile(filepath.Join(w.folder, "token"), []byte(secret+"\n"), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// open returns a target; one that was opened after another is a process that was
// started again.
func (w *world) open(edit func(o *Options)) *Target {
	w.t.Helper()
	o := Options{
		URL: w.api.http.URL, CAFile: w.api.caFile, TokenFile: filepath.Join(w.folder, "token"), StateFile: filepath.Join(w.folder, "state"),
		Routes: routes(), Metrics: w.counts, Wait: 10 * time.Second,
		Running: w.requests.Running,
	}
	if edit != nil {
		edit(&o)
	}
	target, err := New(o)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(target.Close)
	return target
}

// weights of a rule's backendRefs, by site; foreign ones by name.
func (w *world) weights(l shares.Link) map[string]int64 {
	w.t.Helper()
	w.api.mu.Lock()
	defer w.api.mu.Unlock()
	all := map[string]int64{}
	for _, r := range w.target.of(func(r *Route) bool { return r.Link == l && !r.Writes }) {
		o := w.read(r.object())
		for _, ref := range o.Spec.Rules[r.place(o)].BackendRefs {
			all[ref.Name[strings.Index(ref.Name, "-")+1:]] = ref.weight()
		}
	}
	return all
}

func (w *world) read(k key) *object {
	b, err := json.Marshal(w.api.objects[k.namespace+"/"+k.name])
	o := &object{}
	if err == nil {
		err = json.Unmarshal(b, o)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return o
}

// up changes whether the Services of a site have ready endpoints, and looks, as the
// Keeper does once a second.
func (w *world) up(site string, up bool) {
	w.t.Helper()
	w.api.mu.Lock()
	for _, of := range []string{"search-", "cart-"} {
		w.api.ready["shop/"+of+site] = up
	}
	w.api.mu.Unlock()
	w.target.mu.Lock()
	tables := slices.Collect(maps.Values(w.target.tables))
	w.target.mu.Unlock()
	for _, table := range tables {
		if _, err := w.target.Put(w.t.Context(), table); err != nil {
			w.t.Error(err)
		}
	}
}

// foreign is all that the cluster has, byte for byte, but what the API server and the
// gateway write, and the weights of Frontend's rules.
func (w *world) foreign() string {
	w.t.Helper()
	w.api.mu.Lock()
	defer w.api.mu.Unlock()
	all := map[string]any{}
	for id, o := range w.api.objects {
		o = runtime.DeepCopyJSON(o)
		delete(o, "status")
		meta, _ := o["metadata"].(map[string]any)
		delete(meta, "resourceVersion")
		delete(meta, "generation")
		spec, _ := o["spec"].(map[string]any)
		rules, _ := spec["rules"].([]any)
		for i := range w.target.o.Routes {
			r := &w.target.o.Routes[i]
			if r.Namespace+"/"+r.Name != id || r.Link.From != routertest.Frontend {
				continue
			}
			read := w.read(r.object())
			rule, _ := rules[r.place(read)].(map[string]any)
			refs, _ := rule["backendRefs"].([]any)
			for _, slots := range r.slots(read.Spec.Rules[r.place(read)].BackendRefs) {
				for _, at := range slots {
					delete(refs[at].(map[string]any), "weight")
				}
			}
		}
		all[id] = o
	}
	b, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		w.t.Fatal(err)
	}
	return string(b)
}

func (w *world) suite() routertest.World {
	return routertest.World{
		Target: w.target, Second: second, Resolution: 1. / Units, Up: w.up, Foreign: w.foreign,
		Send: w.requests.Send, Hold: w.requests.Hold,
		Cut: func() func() {
			cut := func(down bool) {
				w.api.mu.Lock()
				defer w.api.mu.Unlock()
				w.api.down = down
			}
			cut(true)
			return func() { cut(false) }
		},
	}
}

// TestGatewayAPIIsATarget runs the suite against the published schema.
func TestGatewayAPIIsATarget(t *testing.T) {
	t.Parallel()
	routertest.Run(t, func(t *testing.T) routertest.World {
		t.Helper()
		return newWorld(t, nil).suite()
	})
}

type counts struct {
	mu sync.Mutex
	n  map[executor.Counter]int64
}

func (c *counts) Count(k executor.Counter, _ string, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n[k] += n
}

func (c *counts) of(k executor.Counter) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[k]
}
