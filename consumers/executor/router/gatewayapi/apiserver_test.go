package gatewayapi

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "k8s.io/apimachinery/pkg/util/json"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// apiServer is the part of a Kubernetes API server that serves HTTPRoutes and
// EndpointSlices: versions, conflicts, defaults and the published schema, generations,
// and a status of its own. A gateway says in it what it accepts.
type apiServer struct {
	t      *testing.T
	schema *published
	http   *httptest.Server
	caFile string
	token  string

	mu       sync.Mutex
	version  int
	objects  map[string]map[string]any // by namespace/name
	ready    map[string]bool           // Services by namespace/name; those that are not here have no slice
	down     bool                      // connections break off
	denied   map[string]int            // status codes, by method or resource
	meddle   []func()                  // run before a patch is applied, one each
	accept   func(o *gatewayv1.HTTPRoute) error
	silent   bool // the gateway says nothing
	patches  [][]operation
	requests int
}

func decodeObject(b []byte) (o map[string]any, err error) {
	err = kjson.Unmarshal(b, &o) // whole numbers stay whole
	return o, err
}

func newServer(t *testing.T, objects ...string) *apiServer {
	t.Helper()
	p, err := publishedSchema()
	if err != nil {
		t.Fatal(err)
	}
	s := &apiServer{t: t, schema: p, token: "secret-1", objects: map[string]map[string]any{}, ready: map[string]bool{}, denied: map[string]int{}}
	s.http = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.http.Config.ErrorLog = log.New(io.Discard, "", 0) // clients that trust nobody are among the tests
	s.http.StartTLS()
	t.Cleanup(s.http.Close)
	s.caFile = filepath.Join(t.TempDir(), "ca.crt")
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.http.Certificate().Raw})
	if err := os.WriteFile(s.caFile, ca, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, text := range objects {
		s.edit("", func(map[string]any) map[string]any { return decodeYAML(t, text) })
	}
	return s
}

// edit is somebody else's write to an HTTPRoute ("" makes one).
func (s *apiServer) edit(id string, edit func(o map[string]any) map[string]any) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.objects[id]
	if refused := s.store(edit(runtime.DeepCopyJSON(old)), old); refused != nil {
		s.t.Errorf("%s: %+v", id, refused)
	}
}

// store admits an object and keeps it under a new version.
func (s *apiServer) store(o, old map[string]any) *metav1.Status {
	meta, _ := o["metadata"].(map[string]any)
	id := fmt.Sprint(meta["namespace"], "/", meta["name"])
	unknown, faults := s.schema.admit(o, old)
	if len(unknown) > 0 {
		return refuse(http.StatusBadRequest, "strict decoding error: unknown field "+strings.Join(unknown, ", "))
	}
	if len(faults) > 0 {
		status := refuse(http.StatusUnprocessableEntity, faults.ToAggregate().Error())
		status.Details = &metav1.StatusDetails{}
		for _, f := range faults {
			status.Details.Causes = append(status.Details.Causes, metav1.StatusCause{Field: f.Field, Message: f.Error()})
		}
		return status
	}
	generation := int64(1)
	if old != nil {
		generation = old["metadata"].(map[string]any)["generation"].(int64)
		if !equality.Semantic.DeepEqual(o["spec"], old["spec"]) {
			generation++
		}
		o["status"] = old["status"] // has a way of its own
	}
	s.version++
	meta["generation"], meta["resourceVersion"] = generation, strconv.Itoa(s.version)
	if o["status"] == nil {
		delete(o, "status")
	}
	s.objects[id] = o
	return nil
}

// reconcile is the gateway: it says what it thinks of an object.
func (s *apiServer) reconcile(id string) {
	o := runtime.DeepCopyJSON(s.objects[id])
	b, err := json.Marshal(o)
	var route gatewayv1.HTTPRoute
	if err == nil {
		err = json.Unmarshal(b, &route)
	}
	if err != nil {
		s.t.Error(err)
		return
	}
	accepted := metav1.Condition{Type: "Accepted", Status: metav1.ConditionTrue, Reason: "Accepted", ObservedGeneration: route.Generation, LastTransitionTime: metav1.Now()}
	if s.accept != nil {
		if err := s.accept(&route); err != nil {
			accepted.Status, accepted.Reason, accepted.Message = metav1.ConditionFalse, "UnsupportedValue", err.Error()
		}
	}
	resolved := accepted
	resolved.Type, resolved.Status, resolved.Reason, resolved.Message = "ResolvedRefs", metav1.ConditionTrue, "ResolvedRefs", ""
	for _, r := range route.Spec.Rules {
		for _, b := range r.BackendRefs {
			if _, has := s.ready[route.Namespace+"/"+string(b.Name)]; !has {
				resolved.Status, resolved.Reason = metav1.ConditionFalse, "BackendNotFound"
			}
		}
	}
	status := gatewayv1.HTTPRouteStatus{RouteStatus: gatewayv1.RouteStatus{Parents: []gatewayv1.RouteParentStatus{{
		ParentRef: gatewayv1.ParentReference{Name: "edge"}, ControllerName: "example.com/gateway", Conditions: []metav1.Condition{accepted, resolved},
	}}}}
	if o["status"], err = runtime.DefaultUnstructuredConverter.ToUnstructured(&status); err != nil {
		s.t.Error(err)
	}
	if _, faults := s.schema.admit(o, s.objects[id]); len(faults) > 0 {
		s.t.Error(faults.ToAggregate())
	}
	s.version++
	o["metadata"].(map[string]any)["resourceVersion"] = strconv.Itoa(s.version)
	s.objects[id] = o
}

// settle has the gateway see all objects.
func (s *apiServer) settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(s.objects)) {
		s.reconcile(id)
	}
}

func refuse(code int, message string) *metav1.Status {
	return &metav1.Status{Status: metav1.StatusFailure, Code: int32(code), Message: message, Reason: metav1.StatusReason(http.StatusText(code))}
}

func (s *apiServer) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	if s.down {
		panic(http.ErrAbortHandler)
	}
	answer, refused := s.answer(r)
	w.Header().Set("Content-Type", "application/json")
	if refused != nil {
		w.WriteHeader(int(refused.Code))
		answer = refused
	}
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		s.t.Error(err)
	}
}

func (s *apiServer) answer(r *http.Request) (any, *metav1.Status) {
	if r.Header.Get("Authorization") != "Bearer "+s.token {
		return nil, refuse(http.StatusUnauthorized, "Unauthorized")
	}
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if len(path) < 6 || path[0] != "apis" || path[3] != "namespaces" {
		return nil, refuse(http.StatusNotFound, "the server could not find the requested resource")
	}
	for _, what := range []string{r.Method, path[5]} {
		if code := s.denied[what]; code != 0 {
			return nil, refuse(code, "denied: "+what)
		}
	}
	if path[1] == "discovery.k8s.io" && path[5] == "endpointslices" && r.Method == http.MethodGet {
		return s.slices(path[4], r.URL.Query().Get("labelSelector")), nil
	}
	if path[1]+"/"+path[2] != gatewayv1.GroupVersion.String() || path[5] != "httproutes" || len(path) != 7 || s.objects[path[4]+"/"+path[6]] == nil {
		return nil, refuse(http.StatusNotFound, "not found")
	}
	id := path[4] + "/" + path[6]
	switch r.Method {
	case http.MethodGet:
		return s.objects[id], nil
	case http.MethodPatch:
		return s.patch(id, r)
	}
	return nil, refuse(http.StatusMethodNotAllowed, "method")
}

// patch applies a JSON patch to the version that is there, as the API server does,
// with the same library.
func (s *apiServer) patch(id string, r *http.Request) (any, *metav1.Status) {
	body, err := io.ReadAll(r.Body)
	var ops []operation
	if err == nil {
		err = json.Unmarshal(body, &ops)
	}
	if err != nil || r.Header.Get("Content-Type") != "application/json-patch+json" || r.URL.Query().Get("fieldValidation") != "Strict" {
		return nil, refuse(http.StatusUnsupportedMediaType, "a strict JSON patch is expected")
	}
	s.patches = append(s.patches, ops)
	if len(s.meddle) > 0 {
		meddle := s.meddle[0]
		s.meddle = s.meddle[1:]
		s.mu.Unlock()
		meddle()
		s.mu.Lock()
	}
	old := s.objects[id]
	b, err := json.Marshal(old)
	if err != nil {
		return nil, refuse(http.StatusInternalServerError, err.Error())
	}
	p, err := jsonpatch.DecodePatch(body)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, err.Error())
	}
	if b, err = p.Apply(b); err != nil {
		return nil, refuse(http.StatusUnprocessableEntity, "the server rejected our request due to an error in our request")
	}
	o, err := decodeObject(b)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, err.Error())
	}
	if refused := s.store(o, old); refused != nil {
		return nil, refused
	}
	stored := runtime.DeepCopyJSON(s.objects[id])
	if !s.silent {
		s.reconcile(id)
	}
	return stored, nil
}

func (s *apiServer) slices(namespace, selector string) any {
	names, ok := strings.CutPrefix(selector, "kubernetes.io/service-name in (")
	if !ok {
		s.t.Errorf("selector %q", selector)
	}
	items := []any{}
	for _, name := range strings.Split(strings.TrimSuffix(names, ")"), ",") {
		ready, has := s.ready[namespace+"/"+name]
		if !has {
			continue
		}
		items = append(items, map[string]any{
			"metadata":  map[string]any{"labels": map[string]any{"kubernetes.io/service-name": name}},
			"endpoints": []any{map[string]any{"addresses": []any{"10.0.0.1"}, "conditions": map[string]any{"ready": ready}}, map[string]any{"conditions": map[string]any{"ready": false}}},
		})
	}
	return map[string]any{"kind": "EndpointSliceList", "items": items}
}
