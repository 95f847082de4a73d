package gatewayapi

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"penstock/consumers/executor/kubeapi"
	"penstock/consumers/executor/router"
	"penstock/consumers/executor/router/routertest"
	"penstock/infra/shares"
)

// TestToken is read again, since those of service accounts change.
func TestToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.put(1, 1, 0, 0)
	w.api.mu.Lock()
	w.api.token = "secret-2"
	w.api.mu.Unlock()
	if _, err := w.target.Put(t.Context(), routertest.Table(2, 0, 1, 0)); !errors.Is(err, router.ErrUnreachable) || strings.Contains(err.Error(), "secret") {
		t.Errorf("with an old token: %v", err)
	}
	w.token("secret-2")
	w.put(2, 0, 1, 0)
	if err := os.Remove(filepath.Join(w.folder, "token")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.target.Put(t.Context(), routertest.Table(3, 1, 0, 0)); !errors.Is(err, router.ErrUnreachable) {
		t.Errorf("without a token: %v", err)
	}
	foreigner, err := New(Options{URL: w.api.http.URL, Routes: routes()})
	if err != nil {
		t.Fatal(err)
	}
	defer foreigner.Close()
	if _, err := foreigner.Put(t.Context(), routertest.Table(3, 1, 0, 0)); !errors.Is(err, router.ErrUnreachable) || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a server that nobody vouches for: %v", err)
	}
}

// TestAbsent rules and backendRefs reject a table.
func TestAbsent(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(r *Route){
		"route":      func(r *Route) { r.Name = "x" },
		"rule":       func(r *Route) { r.Rule = "x" },
		"place":      func(r *Route) { r.Rule = "9" },
		"backendRef": func(r *Route) { r.Backends["east"] = Backend{Name: "x"} },
		"port":       func(r *Route) { r.Backends["east"] = Backend{Name: "search-east", Port: 1} },
		"kind":       func(r *Route) { r.Backends["east"] = Backend{Name: "search-east", Kind: "ServiceImport"} },
		"namespace":  func(r *Route) { r.Backends["east"] = Backend{Name: "search-east", Namespace: "x"} },
	} {
		w := newWorld(t, func(o *Options) { o.Routes = o.Routes[:1]; spoil(&o.Routes[0]) })
		if _, err := w.target.Put(t.Context(), routertest.Table(1, 1, 0, 0)); !errors.Is(err, shares.ErrAbsent) {
			t.Errorf("%s: put: %v", name, err)
		}
		if err := w.target.Ready(t.Context(), shares.Replica{Component: routertest.Search, Site: "east"}); !errors.Is(err, shares.ErrAbsent) {
			t.Errorf("%s: ready: %v", name, err)
		}
		if len(w.api.patches) > 0 {
			t.Errorf("%s: something was written: %v", name, w.api.patches)
		}
	}
}

// TestOptions that can't work.
func TestOptions(t *testing.T) {
	caFile := filepath.Join(t.TempDir(), "ca")
	if err := os.WriteFile(caFile, []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for name, spoil := range map[string]func(o *Options){
		"no routes":       func(o *Options) { o.Routes = nil },
		"negative time":   func(o *Options) { o.Wait = -1 },
		"no link":         func(o *Options) { o.Routes[0].Link = shares.Link{} },
		"twice":           func(o *Options) { o.Routes[1] = o.Routes[0] },
		"a site nameless": func(o *Options) { o.Routes[0].Backends = map[string]Backend{"": {Name: "a"}} },
		"two sites, one":  func(o *Options) { o.Routes[0].Backends = map[string]Backend{"a": {Name: "a"}, "b": {Name: "a"}} },
		"no URL":          func(o *Options) { o.URL = "" },
		"a strange URL":   func(o *Options) { o.URL = "ftp://x" },
		"no CA":           func(o *Options) { o.CAFile = caFile },
		"no CA file":      func(o *Options) { o.CAFile = caFile + "x" },
	} {
		o := Options{URL: "https://127.0.0.1:1", Routes: routes()}
		spoil(&o)
		if _, err := New(o); !errors.Is(err, router.ErrOptions) {
			t.Errorf("%s: %v", name, err)
		}
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "::1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "6443")
	o := Options{Routes: routes()}
	if err := o.complete(); err != nil || o.URL != "https://[::1]:6443" || o.TokenFile != kubeapi.ServiceAccount+"/token" || o.CAFile != kubeapi.ServiceAccount+"/ca.crt" {
		t.Errorf("in a cluster: %+v, %v", o, err)
	}
}
