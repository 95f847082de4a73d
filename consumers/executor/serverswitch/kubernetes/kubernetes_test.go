package kubernetes_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"penstock/consumers/executor/kubeapi"
	"penstock/consumers/executor/serverswitch"
	"penstock/consumers/executor/serverswitch/kubernetes"
	"penstock/consumers/executor/serverswitch/switchtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// apiServer is the part of a Kubernetes API server that serves the subresource scale
// (autoscaling/v1) of Deployments and StatefulSets: versions and conflicts, merge patches
// (RFC 7386), and Status objects.
type apiServer struct {
	t    *testing.T
	http *httptest.Server

	mu      sync.Mutex
	scales  map[string]*object // by path
	version int
	down    bool
	deny    int    // status code of answers to patches
	meddle  []int  // numbers that somebody else sets before a patch is applied, one each
	written []int  // numbers that were set
	token   string // that is to be sent
}

// object is a Scale. A number of 0 is left out, as the API server's encoder does.
type object struct {
	Kind       string         `json:"kind"`
	APIVersion string         `json:"apiVersion"`
	Metadata   map[string]any `json:"metadata"`
	Spec       struct {
		Replicas int `json:"replicas,omitempty"`
	} `json:"spec"`
	Status struct {
		Replicas int    `json:"replicas"`
		Selector string `json:"selector"`
	} `json:"status"`
}

const deployment, statefulSet = "/apis/apps/v1/namespaces/shop/deployments/web/scale", "/apis/apps/v1/namespaces/shop/statefulsets/web/scale"

func newServer(t *testing.T, replicas int) *apiServer {
	t.Helper()
	s := &apiServer{t: t, scales: map[string]*object{}}
	for _, path := range []string{deployment, statefulSet} {
		o := &object{Kind: "Scale", APIVersion: "autoscaling/v1", Metadata: map[string]any{"name": "web", "namespace": "shop"}}
		o.Status.Selector = "app=web"
		s.scales[path] = o
		s.set(o, replicas)
	}
	s.http = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.http.Close)
	return s
}

func (s *apiServer) set(o *object, replicas int) {
	s.version++
	o.Metadata["resourceVersion"] = strconv.Itoa(s.version)
	o.Spec.Replicas, o.Status.Replicas = replicas, replicas
}

func (s *apiServer) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		panic(http.ErrAbortHandler)
	}
	code, answer := s.answer(r)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		s.t.Error(err)
	}
}

func refuse(code int, reason string) (int, any) {
	return code, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": "no: " + reason}
}

func (s *apiServer) answer(r *http.Request) (int, any) {
	o := s.scales[r.URL.Path]
	switch {
	case s.token != "" && r.Header.Get("Authorization") != "Bearer "+s.token:
		return refuse(http.StatusUnauthorized, "Unauthorized")
	case o == nil:
		return refuse(http.StatusNotFound, "NotFound")
	case r.Method == http.MethodGet:
		return http.StatusOK, o
	case r.Method != http.MethodPatch || r.Header.Get("Content-Type") != "application/merge-patch+json":
		return refuse(http.StatusUnsupportedMediaType, "UnsupportedMediaType")
	case s.deny != 0:
		return refuse(s.deny, "Denied")
	}
	if len(s.meddle) > 0 {
		s.set(o, s.meddle[0])
		s.meddle = s.meddle[1:]
	}
	b, err := io.ReadAll(r.Body)
	var patch, rest map[string]json.RawMessage
	var spec struct{ Replicas *int }
	var meta struct{ ResourceVersion string }
	for _, part := range []struct {
		from func() []byte
		to   any
	}{{func() []byte { return b }, &patch}, {func() []byte { return patch["spec"] }, &spec}, {func() []byte { return patch["metadata"] }, &meta}, {func() []byte { return patch["metadata"] }, &rest}} {
		if err == nil {
			err = json.Unmarshal(part.from(), part.to)
		}
	}
	switch {
	case err != nil || len(patch) != 2 || len(rest) != 1 || spec.Replicas == nil || *spec.Replicas < 0:
		s.t.Errorf("patch %s, %v", b, err)
		return refuse(http.StatusUnprocessableEntity, "Invalid")
	case meta.ResourceVersion != o.Metadata["resourceVersion"]:
		return refuse(http.StatusConflict, "Conflict")
	}
	s.set(o, *spec.Replicas)
	s.written = append(s.written, *spec.Replicas)
	return http.StatusOK, o
}

func (s *apiServer) replicas(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.scales[path].Spec.Replicas
}

func (s *apiServer) backend(t *testing.T, workload string, servers ...string) *kubernetes.Backend {
	t.Helper()
	b, err := kubernetes.New(kubernetes.Options{API: kubeapi.Options{URL: s.http.URL}, Namespace: "shop", Workload: workload, Servers: servers})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// TestSuite: a StatefulSet of two servers; and Deployments, of one server each and of two.
func TestSuite(t *testing.T) {
	t.Parallel()
	servers := [2]serverswitch.Server{{Name: "a", Site: "east"}, {Name: "b", Site: "east"}}
	t.Run("StatefulSet", func(t *testing.T) {
		t.Parallel()
		switchtest.Run(t, func(t *testing.T) switchtest.World {
			s := newServer(t, 2)
			return switchtest.World{
				Backend: s.backend(t, "statefulset/web", "a", "b"), Servers: servers, Sees: true, Cut: s.cut,
				On: func(server string) bool { return s.replicas(statefulSet) > map[string]int{"a": 0, "b": 1}[server] },
			}
		})
	})
	t.Run("Deployments", func(t *testing.T) {
		t.Parallel()
		switchtest.Run(t, func(t *testing.T) switchtest.World {
			one, two := newServer(t, 1), newServer(t, 1)
			return switchtest.World{
				Backend: each{one.backend(t, "Deployment/web", "a"), two.backend(t, "deployment/web", "b")}, Servers: servers, Sees: true,
				Cut: func() func() {
					a, b := one.cut(), two.cut()
					return func() { a(); b() }
				},
				On: func(server string) bool {
					return map[string]*apiServer{"a": one, "b": two}[server].replicas(deployment) > 0
				},
			}
		})
	})
}

// each has a Deployment for each of two servers.
type each [2]*kubernetes.Backend

func (e each) Name() string { return e[0].Name() }

func (e each) Switch(ctx context.Context, o serverswitch.Order) error {
	return e.of(o.Server).Switch(ctx, o)
}

func (e each) Observe(ctx context.Context, s serverswitch.Server) (serverswitch.Power, error) {
	return e.of(s).Observe(ctx, s)
}

func (e each) of(s serverswitch.Server) *kubernetes.Backend { return e[strings.Index("ab", s.Name)] }

func (s *apiServer) cut() func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = true
	return func() { s.mu.Lock(); defer s.mu.Unlock(); s.down = false }
}

// order is one for a server, with what is to run and what is wanted.
func order(server string, on bool, up, wanted string) serverswitch.Order {
	return serverswitch.Order{
		Server: serverswitch.Server{Name: server}, On: on,
		Up: func() []string { return strings.Fields(up) }, Wanted: func() []string { return strings.Fields(wanted) },
	}
}

// TestNumbers of pods for orders, of both kinds.
func TestNumbers(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		workload string
		o        serverswitch.Order
		want     int
		err      error
	}{
		{"deployment/web", order("a", true, "a", "a"), 1, nil},
		{"deployment/web", order("b", true, "a b c x", "a b c"), 3, nil},
		{"deployment/web", order("b", false, "a c", "a"), 2, nil},
		{"deployment/web", order("b", false, "a b", "a"), 1, nil},
		{"statefulset/web", order("b", true, "b", "b"), 2, nil},
		{"statefulset/web", order("c", false, "a", "a"), 1, nil},
		{"statefulset/web", order("b", false, "a c", "a c"), 2, kubernetes.ErrHeld},
		{"statefulset/web", order("b", false, "a c", "a"), 2, serverswitch.ErrLater},
		{"statefulset/web", order("x", false, "a", "a"), 2, kubernetes.ErrOptions},
	} {
		s := newServer(t, 2)
		path := map[string]string{"deployment/web": deployment, "statefulset/web": statefulSet}[x.workload]
		err := s.backend(t, x.workload, "a", "b", "c").Switch(t.Context(), x.o)
		if got := s.replicas(path); !errors.Is(err, x.err) || (err == nil) != (x.err == nil) || got != x.want {
			t.Errorf("%s %+v: %d, %v; expected %d, %v", x.workload, x.o.Server, got, err, x.want, x.err)
		}
		if errors.Is(err, serverswitch.ErrLater) != (x.err == serverswitch.ErrLater) { //nolint:errorlint // of the table
			t.Errorf("%v", err)
		}
	}
}

// TestOthersWrite: the number is found out again, up to a point.
func TestOthersWrite(t *testing.T) {
	t.Parallel()
	s := newServer(t, 1)
	s.meddle = []int{5, 7}
	b := s.backend(t, "deployment/web", "a", "b")
	if err := b.Switch(t.Context(), order("b", true, "a b", "a b")); err != nil || !slices.Equal(s.written, []int{2}) {
		t.Errorf("%v, %v", s.written, err)
	}
	s.meddle = []int{5, 5, 5, 5, 5}
	if err := b.Switch(t.Context(), order("b", false, "a", "a")); !errors.Is(err, kubernetes.ErrConflict) {
		t.Errorf("%v", err)
	}
}

// TestFails: what the API server says, and options that can't work.
func TestFails(t *testing.T) {
	t.Parallel()
	s := newServer(t, 1)
	if err := s.backend(t, "deployment/none", "a").Switch(t.Context(), order("a", true, "a", "a")); !errors.Is(err, kubeapi.ErrAbsent) {
		t.Errorf("%v", err)
	}
	b := s.backend(t, "deployment/web", "a")
	for code, want := range map[int]error{403: kubeapi.ErrRefused, 422: kubeapi.ErrConflict, 503: kubeapi.ErrUnreachable} {
		s.deny = code
		err := b.Switch(t.Context(), order("a", false, "", ""))
		if code == 422 {
			want = kubernetes.ErrConflict
		}
		if !errors.Is(err, want) {
			t.Errorf("%d: %v", code, err)
		}
	}
	if _, err := b.Observe(t.Context(), serverswitch.Server{Name: "x"}); !errors.Is(err, kubernetes.ErrOptions) {
		t.Errorf("%v", err)
	}
	api := kubeapi.Options{URL: s.http.URL}
	for _, o := range []kubernetes.Options{
		{API: api, Servers: []string{"a"}},
		{API: api, Workload: "pod/x", Servers: []string{"a"}},
		{API: api, Workload: "deployment/x"},
		{API: api, Workload: "deployment/x", Servers: []string{"a", "a"}},
		{API: api, Workload: "deployment/x/y", Servers: []string{"a"}},
		{API: api, Workload: "statefulset/x", Servers: []string{"a"}, Each: 2},
		{API: api, Workload: "deployment/x", Servers: []string{""}},
		{API: kubeapi.Options{URL: "ftp://x"}, Workload: "deployment/x", Servers: []string{"a"}},
		{API: kubeapi.Options{URL: s.http.URL, CAFile: "/nowhere"}, Workload: "deployment/x", Servers: []string{"a"}},
	} {
		if _, err := kubernetes.New(o); !errors.Is(err, kubernetes.ErrOptions) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// TestToken is read again for each request; without the right one nothing is known.
func TestToken(t *testing.T) {
	t.Parallel()
	s := newServer(t, 3)
	s.token = "right"
	file := filepath.Join(t.TempDir(), "token")
	b, err := kubernetes.New(kubernetes.Options{
		API: kubeapi.Options{URL: s.http.URL, TokenFile: file}, Namespace: "shop", Workload: "deployment/web", Servers: []string{"a", "b"}, Each: 2,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for _, token := range []string{"", "wrong", "right"} {
		if token != "" {
			if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, err := b.Observe(t.Context(), serverswitch.Server{Name: "a"})
		if got != serverswitch.Unseen || (err == nil) != (token == "right") || err != nil && !errors.Is(err, kubeapi.ErrUnreachable) {
			t.Errorf("%q: %v, %v", token, got, err)
		}
	}
	for n, want := range map[int]serverswitch.Power{0: serverswitch.PowerOff, 4: serverswitch.PowerOn} {
		s.set(s.scales[deployment], n)
		if got, err := b.Observe(t.Context(), serverswitch.Server{Name: "b"}); got != want || err != nil {
			t.Errorf("of %d: %v, %v", n, got, err)
		}
	}
	if err := b.Switch(t.Context(), order("a", true, "a b", "a b")); err != nil || s.replicas(deployment) != 4 {
		t.Error(fmt.Sprint(s.written), err)
	}
}
