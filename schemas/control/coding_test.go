package control_test

import (
	"strings"
	"testing"

	"penstock/schemas/control"
)

// A table of one code has no thresholds: its lists are empty, never null.
func TestCodingListsAreAlwaysThere(t *testing.T) {
	c := command()
	c.Kind, c.Placement, c.Scope = control.Coding, nil, "store-1"
	c.Coding = &control.CodingTable{Policy: control.CodingStatic, Read: control.CodingCodes{RMax: 1}, Write: control.CodingCodes{RMax: 1}}
	body, err := control.Encode(c)
	if err != nil {
		t.Fatal(err)
	}
	if want := `"read":{"k":[],"n":[],"r_max":1}`; !strings.Contains(string(body), want) {
		t.Errorf("got %s, expected %s", body, want)
	}
	if c.Coding.Read.K != nil {
		t.Error("the message itself was changed")
	}
	m, err := control.DecodeCommand(body)
	if err != nil || m.Coding == nil || m.Coding.Write.K == nil {
		t.Errorf("%+v, %v", m, err)
	}
}
