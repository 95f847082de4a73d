package jsonschema_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"penstock/schemas/control"
	"penstock/schemas/event"
	"penstock/schemas/jsonschema"
	"penstock/schemas/window"
)

type schema struct {
	ID         string                     `json:"$id"`
	Draft      string                     `json:"$schema"`
	Title      string                     `json:"title"`
	About      string                     `json:"description"`
	Properties map[string]json.RawMessage `json:"properties"`
	Required   []string                   `json:"required"`
	Defs       map[string]*schema         `json:"$defs"`
}

func get(t *testing.T, name string) schema {
	t.Helper()
	b, err := jsonschema.Get(name)
	if err != nil {
		t.Fatal(err)
	}
	var s schema
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestEverySchemaSaysWhatItIs(t *testing.T) {
	expected := []string{"command", "commit", "decision", "gauge", "location", "operator", "outcome", "request", "split"}
	if got := jsonschema.Names(); !slices.Equal(got, expected) {
		t.Errorf("got %q, expected %q", got, expected)
	}
	for _, name := range jsonschema.Names() {
		s := get(t, name)
		if s.ID != jsonschema.ID(name) || s.Draft != "https://json-schema.org/draft/2020-12/schema" || s.Title == "" || s.About == "" {
			t.Errorf("%s: %+v", name, s)
		}
		for _, r := range s.Required {
			if s.Properties[r] == nil {
				t.Errorf("%s: %s is required and not described", name, r)
			}
		}
	}
}

func TestAnUnknownSchemaListsThoseThereAre(t *testing.T) {
	b, err := jsonschema.Get("nothing")
	expected := `schema "nothing", expected one of command, commit, decision, gauge, location, operator, outcome, request, split: no such schema`
	if b != nil || !errors.Is(err, jsonschema.ErrUnknown) || err.Error() != expected {
		t.Errorf("got %v\nexpected %s", err, expected)
	}
}

// The schemas describe the fields that the Go types have, no more and no less.
func TestSchemasAndTypesHaveTheSameFields(t *testing.T) {
	properties := func(name string) []string {
		var out []string
		for p := range get(t, name).Properties {
			out = append(out, p)
		}
		slices.Sort(out)
		return out
	}
	for _, c := range []struct {
		name string
		v    any
	}{
		{"command", control.Command{}},
		{"decision", control.Decision{}},
		{"outcome", control.Outcome{}},
		{"location", control.Location{}},
		{"split", control.SplitAnswer{}},
		{"operator", control.Switch{}},
		{"commit", window.Commit{}},
	} {
		names, required := jsonFields(reflect.TypeOf(c.v))
		if got := properties(c.name); !slices.Equal(got, names) {
			t.Errorf("%s: schema has %q, type has %q", c.name, got, names)
		}
		for _, r := range get(t, c.name).Required {
			if !slices.Contains(required, r) {
				t.Errorf("%s: the schema requires %s, which may be left out", c.name, r)
			}
		}
	}
	for name, fields := range map[string][]string{"request": nil, "gauge": nil} {
		columns := event.RequestFields()
		if name == "gauge" {
			columns = event.GaugeFields()
		}
		for _, f := range columns {
			fields = append(fields, f.Name)
		}
		slices.Sort(fields)
		if got := properties(name); !slices.Equal(got, fields) {
			t.Errorf("%s: schema has %q, columns are %q", name, got, fields)
		}
	}
	run, _ := jsonFields(reflect.TypeOf(window.Run{}))
	var got []string
	for p := range get(t, "commit").Defs["run"].Properties {
		got = append(got, p)
	}
	if slices.Sort(got); !slices.Equal(got, run) {
		t.Errorf("run: schema has %q, type has %q", got, run)
	}
}

// jsonFields returns the names of a struct's fields in JSON, ascending, and
// which of them are always there.
func jsonFields(t reflect.Type) (names, always []string) {
	for i := range t.NumField() {
		name, options, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
		if options == "" {
			always = append(always, name)
		}
	}
	slices.Sort(names)
	return names, always
}

func TestTheHeaderOfATypeIsItsSchemasNumber(t *testing.T) {
	for _, s := range []string{control.DecisionSchema, control.CommandSchema, control.OutcomeSchema, window.CommitSchema, event.RequestSchema, event.GaugeSchema} {
		name, number, _ := strings.Cut(s, "/")
		if jsonschema.ID(name) != "urn:penstock:"+name+":"+number {
			t.Errorf("%s: the schema's id is %s", s, jsonschema.ID(name))
		}
	}
	// A message with all its fields set encodes to what the schema names.
	at := time.Unix(0, 0)
	b, err := control.Encode(control.Switch{Version: 1, Mode: control.Act, On: true, After: &at, By: "x", At: at})
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	for k := range m {
		if get(t, "operator").Properties[k] == nil {
			t.Errorf("operator: %s is not described", k)
		}
	}
}
