package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"penstock/infra/testserver"
	"penstock/schemas/control"
)

// kubernetes is the little of a Kubernetes API server that one HTTPRoute needs: it is
// read and patched, and a gateway accepts each version. What the published schema
// allows is tried where the target is.
type kubernetes struct {
	mu      sync.Mutex
	route   []byte
	version int
}

func (c *kubernetes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case r.Header.Get("Authorization") != "Bearer a token of a service account":
		w.WriteHeader(http.StatusUnauthorized)
	case r.URL.Path == "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices":
		var items []string
		for _, site := range []string{"east", "west"} {
			items = append(items, fmt.Sprintf(`{"metadata":{"labels":{"kubernetes.io/service-name":"search-%s"}},"endpoints":[{"conditions":{"ready":true}}]}`, site))
		}
		_, _ = io.WriteString(w, `{"items":[`+strings.Join(items, ",")+`]}`)
	case r.URL.Path != "/apis/gateway.networking.k8s.io/v1/namespaces/shop/httproutes/front":
		w.WriteHeader(http.StatusNotFound)
	case r.Method == http.MethodGet:
		_, _ = w.Write(c.whole())
	case r.Method == http.MethodPatch:
		body, err := io.ReadAll(r.Body)
		var patch jsonpatch.Patch
		if err == nil {
			patch, err = jsonpatch.DecodePatch(body)
		}
		if err == nil {
			var next []byte
			if next, err = patch.Apply(c.whole()); err == nil {
				c.route = next
				c.version++
			}
		}
		if err != nil {
			w.WriteHeader(http.StatusUnprocessableEntity)
			return
		}
		_, _ = w.Write(c.whole())
	}
}

// whole is the object, with its version and what the gateway says of it.
func (c *kubernetes) whole() []byte {
	b, err := jsonpatch.MergePatch(c.route, fmt.Appendf(nil, `{
		"metadata": {"resourceVersion": "%[1]d", "generation": %[1]d},
		"status": {"parents": [{"controllerName": "example.com/gateway", "conditions": [
			{"type": "Accepted", "status": "True", "observedGeneration": %[1]d}, {"type": "ResolvedRefs", "status": "True", "observedGeneration": %[1]d}]}]}}`, c.version))
	if err != nil {
		return nil
	}
	return b
}

// weights of the backendRefs, by name.
func (c *kubernetes) weights() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var o struct {
		Spec struct {
			Rules []struct {
				BackendRefs []struct {
					Name   string
					Weight int
				}
			}
		}
	}
	if err := json.Unmarshal(c.route, &o); err != nil {
		return err.Error()
	}
	return fmt.Sprint(o.Spec.Rules)
}

// TestRouterWritesHTTPRoutes: a command on the bus reaches an HTTPRoute through
// penstock router.
func TestRouterWritesHTTPRoutes(t *testing.T) {
	t.Parallel()
	c := &kubernetes{version: 1, route: []byte(`{"metadata":{"name":"front","namespace":"shop"},"spec":{"rules":[
		{"backendRefs":[{"name":"reports","port":80,"weight":3}]},
		{"name":"search","backendRefs":[{"name":"search-east","port":80,"weight":1},{"name":"search-west","port":80,"weight":1}]}]}}`)}
	api := httptest.NewServer(c)
	t.Cleanup(api.Close)
	token := filepath.Join(t.TempDir(), "token")
	writeFile(t, token, "a token of a service account")
	dir, config := routed(t, fmt.Sprintf(`
router:
  listen: ""
  look: 100ms
  gateway:
    - name: cluster-east
      url: %q
      token_file: %q
      routes:
        - namespace: shop
          route: front
          rule: search
          from: web
          from_site: east
          to: search
          backends: {east: {name: search-east, port: 80}, west: {name: search-west}}
`, api.URL, token))
	at := testserver.FreeAddress(t)
	serve(t, "--config", configure(t, dir, settings{partitions: 2, alpha: 0.3}), "--state", filepath.Join(dir, "state"), "--listen", at, "--name", "core")
	r, _ := route(t, config, "nats://"+at, filepath.Join(dir, "router"), "--target", "cluster-east")
	r.awaitReady(true)
	hand := conduct(t, "nats://"+at)
	hand.send(1, "search", map[string]float64{"east": 0.62, "west": 0.38})
	if o := hand.answered(1, 1)["cluster-east"]; o == nil || o.Status != control.Done {
		t.Errorf("outcome %+v", o)
	}
	if got, want := c.weights(), "[{[{reports 3}]} {[{search-east 6200} {search-west 3800}]}]"; got != want {
		t.Errorf("weights %s, not %s", got, want)
	}
	r.stop()
	refused(t, 2, []string{"router", "--config", config, "--nats", "nats://" + at, "--state", filepath.Join(dir, "other"), "--target", "edge"}, `there is no target "edge": the configuration has cluster-east`)
}
