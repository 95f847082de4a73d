package coding_test

import (
	"reflect"
	"testing"

	"penstock/consumers/decider/coding"
	"penstock/consumers/decider/coding/threshold"
	"penstock/schemas/control"
)

// TestTablesAreFew: a fast store whose tasks have one size, which leaves open how its delays
// grow with it, moves the fit with every window. It begins with the table of the
// configuration, and tables follow each other more and more slowly.
func TestTablesAreFew(t *testing.T) {
	t.Parallel()
	c := coding.Config{Coders: []coding.Coder{{Name: "east"}}}
	p, err := coding.New(c)
	if err != nil {
		t.Fatal(err)
	}
	table, _, err := coding.Default(c, "east")
	if err != nil {
		t.Fatal(err)
	}
	first := table
	w := newWorld(5)
	for _, op := range []string{"read", "write"} {
		w.models[[2]string{"east", op}] = threshold.Model{Delta: 0.3, DeltaPerMB: 1, Psi: 0.2, PsiPerMB: 0.5}
	}
	var at []int
	for n := range 120 {
		for i, codes := range []control.CodingCodes{table.Read, table.Write} {
			code := coding.Code{}
			code.N, code.K = threshold.Table{K: codes.K, N: codes.N}.Code(0, codes.RMax)
			w.serve(traffic{store: "east", op: []string{"read", "write"}[i], n: code.N, k: code.K, mb: 3, count: 60})
		}
		for _, c := range step(t, p, w, n, act()).Commands {
			if c.Reason.Code == coding.FirstTable && !reflect.DeepEqual(*c.Coding, first) {
				t.Errorf("the first table is not that of the configuration: %+v", c.Coding)
			}
			if c.Reason.Code != coding.Renewed {
				at = append(at, n)
			}
			table = *c.Coding
		}
		if n%10 == 3 {
			p = restarted(t, p)
		}
	}
	if len(at) < 2 || len(at) > 9 || at[1] < 3 {
		t.Errorf("tables at the windows %v", at)
	}
}
