package gatewayapi

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"penstock/infra/shares"
)

// published is the schema of HTTPRoutes that the Gateway API project publishes, with
// the code by which a Kubernetes API server enforces it.
type published struct {
	structural *schema.Structural
	validator  validation.SchemaValidator
	rules      *cel.Validator
}

// publishedSchema reads the schema from the module of the Gateway API.
var publishedSchema = sync.OnceValues(func() (*published, error) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api").Output()
	if err != nil {
		return nil, err
	}
	b, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "config/crd/standard/gateway.networking.k8s.io_httproutes.yaml"))
	if err != nil {
		return nil, err
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(b, &crd); err != nil {
		return nil, err
	}
	p := &published{}
	for _, v := range crd.Spec.Versions {
		if v.Name != gatewayv1.GroupVersion.Version {
			continue
		}
		var props apiextensions.JSONSchemaProps
		if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v.Schema.OpenAPIV3Schema, &props, nil); err != nil {
			return nil, err
		}
		if p.structural, err = schema.NewStructural(&props); err != nil {
			return nil, err
		}
		if p.validator, _, err = validation.NewSchemaValidator(&props); err != nil {
			return nil, err
		}
		p.rules = cel.NewValidator(p.structural, true, celconfig.PerCallLimit)
	}
	return p, nil
})

// admit does to an object what the API server does before it stores it: unknown
// fields are named, defaults filled in, and what the schema does not allow is
// returned.
func (p *published) admit(o, old map[string]any) (unknown []string, faults field.ErrorList) {
	unknown = pruning.PruneWithOptions(o, p.structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	defaulting.Default(o, p.structural)
	faults = validation.ValidateCustomResource(nil, o, p.validator)
	faults = append(faults, listtype.ValidateListSetsAndMaps(nil, p.structural, o)...)
	if len(faults) > 0 {
		return unknown, faults
	}
	var before any
	if old != nil {
		before = old
	}
	faults, _ = p.rules.Validate(context.Background(), nil, p.structural, o, before, celconfig.RuntimeCELCostBudget)
	return unknown, faults
}

// TestPublishedSchema is enforced by what the other tests rely on: weights beyond it,
// unknown fields, and what its CEL rules forbid are refused; lists are atomic, which
// is why weights are patched.
func TestPublishedSchema(t *testing.T) {
	t.Parallel()
	p, err := publishedSchema()
	if err != nil {
		t.Fatal(err)
	}
	rules := p.structural.Properties["spec"].Properties["rules"]
	refs := rules.Items.Properties["backendRefs"]
	for name, list := range map[string]*string{"rules": rules.XListType, "backendRefs": refs.XListType} {
		if list == nil || *list != "atomic" {
			t.Errorf("the list of %s is %v, not atomic", name, list)
		}
	}
	for name, tc := range map[string]struct {
		edit    string // in the place of a backendRef
		fault   string
		unknown string
	}{
		"good":           {edit: `{name: a, port: 80, weight: 1000000}`},
		"too great":      {edit: `{name: a, port: 80, weight: 1000001}`, fault: "weight"},
		"negative":       {edit: `{name: a, port: 80, weight: -1}`, fault: "weight"},
		"a fraction":     {edit: `{name: a, port: 80, weight: 0.5}`, fault: "weight"},
		"without a port": {edit: `{name: a, weight: 1}`, fault: "Must have port for Service reference"},
		"unknown":        {edit: `{name: a, port: 80, share: 1}`, unknown: "spec.rules[0].backendRefs[0].share"},
	} {
		o := decodeYAML(t, strings.Replace(`
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: x, namespace: shop}
spec: {rules: [{backendRefs: [REF]}]}`, "REF", tc.edit, 1))
		unknown, faults := p.admit(o, nil)
		if said := faults.ToAggregate(); (tc.fault == "") != (said == nil) || said != nil && !strings.Contains(said.Error(), tc.fault) {
			t.Errorf("%s: faults %v", name, said)
		}
		if strings.Join(unknown, " ") != tc.unknown {
			t.Errorf("%s: unknown fields %v", name, unknown)
		}
	}
}

// TestExample of an HTTPRoute is what the published schema allows, and what the rules
// beside it stand for.
func TestExample(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../../infra/examples/router/httproute.yaml")
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n---\n")
	s := newServer(t, first)
	for _, name := range []string{"search-east", "search-west", "search-canary", "web"} {
		s.ready["shop/"+name] = true
	}
	s.settle()
	at := map[string]Backend{
		"us-east": {Name: "search-east", Port: 8080},
		"us-west": {Name: "search-west", Port: 8080, Group: "multicluster.x-k8s.io", Kind: "ServiceImport"},
	}
	l := shares.Link{From: "web", FromSite: "us-east", To: "search"}
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(s.token), 0o600); err != nil {
		t.Fatal(err)
	}
	target, err := New(Options{URL: s.http.URL, CAFile: s.caFile, TokenFile: token, Routes: []Route{
		{Namespace: "shop", Name: "shop", Rule: "search", Link: l, Backends: at},
		{Namespace: "shop", Name: "shop", Rule: "search-writes", Link: l, Backends: at, Writes: true},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	for site := range at {
		if err := target.Ready(t.Context(), shares.Replica{Component: "search", Site: site}); err != nil {
			t.Error(err)
		}
	}
	row := shares.Row{FromSite: "us-east", To: "search", WritesAt: "us-west", Ratios: []shares.Ratio{{Site: "us-east", Share: 0.62}, {Site: "us-west", Share: 0.38}}}
	if n, err := target.Put(t.Context(), shares.Table{From: "web", Epoch: 1, Rows: []shares.Row{row}}); n != 4 || err != nil {
		t.Errorf("%d changes, %v", n, err)
	}
}

func decodeYAML(t *testing.T, text string) map[string]any {
	t.Helper()
	b, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	o, err := decodeObject(b)
	if err != nil {
		t.Fatal(err)
	}
	return o
}
