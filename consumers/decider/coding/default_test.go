package coding_test

import (
	"errors"
	"reflect"
	"testing"

	"penstock/consumers/decider/coding"
	"penstock/schemas/control"
)

// Before anything was measured a coder goes by the models of the configuration, as a
// policy that has seen nothing would.
func TestDefaultTable(t *testing.T) {
	c := coding.Config{Policy: control.CodingStatic, Code: coding.Code{N: 4, K: 2}, Coders: []coding.Coder{{Name: "objects", Members: []string{"east"}}}}
	table, known, err := coding.Default(c, "objects")
	if err != nil || !known {
		t.Fatal(known, err)
	}
	always := control.MaxBacklog
	if want := []float64{always}; table.Policy != control.CodingStatic || !reflect.DeepEqual(table.Read.K, want) || len(table.Read.N) != 3 {
		t.Errorf("got %+v", table)
	}
	if _, known, err := coding.Default(c, "others"); known || err != nil {
		t.Errorf("a coder that nobody named: %v, %v", known, err)
	}
	c.Code.K = 9
	if _, _, err := coding.Default(c, "objects"); !errors.Is(err, coding.ErrConfig) {
		t.Errorf("got %v", err)
	}
}
