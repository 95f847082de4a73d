package placement

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"penstock/schemas/control"
)

// TestImportsAreTakenInTogether: whoever looks at the state in between changes
// nothing, whether an owner was known or not, and imported once or twice.
func TestImportsAreTakenInTogether(t *testing.T) {
	sites := []Site{{Name: "a", Capacity: 1}, {Name: "b", Capacity: 1}}
	run := func(look int) string {
		p, err := New(Config{Sites: sites, Alpha: 1, Locations: map[string]control.Location{"o7": {Site: "a", Version: 2}}})
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(1, 2))
		for i := range 400 {
			p.Apply(&control.Outcome{
				Kind: control.Placement, Status: control.Imported, Owner: fmt.Sprint("o", r.IntN(150)), Scope: sites[r.IntN(2)].Name,
				Move: uint64(r.IntN(4)), Pinned: r.IntN(5) == 0,
			})
			if look > 0 && i%look == 0 {
				p.Explain("o1")
			}
		}
		var b strings.Builder
		if err := p.Snapshot(&b); err != nil {
			t.Fatal(err)
		}
		return p.Digest() + fmt.Sprint(p.At("a"), p.At("b")) + b.String()
	}
	want := run(0)
	for _, look := range []int{1, 7} {
		if got := run(look); got != want {
			t.Errorf("looked at every %d imports, the state is another", look)
		}
	}
	if !strings.Contains(want, "{o7 ") {
		t.Error("o7 is nowhere")
	}
}

// BenchmarkImportUnknown takes in owners that nobody knows, in no order.
func BenchmarkImportUnknown(b *testing.B) {
	b.ReportAllocs()
	p, err := New(Config{Sites: []Site{{Name: "a", Capacity: 1}, {Name: "b", Capacity: 1}}, Alpha: 1})
	if err != nil {
		b.Fatal(err)
	}
	o := control.Outcome{Kind: control.Placement, Status: control.Imported, Scope: "a"}
	for i := 0; b.Loop(); i++ {
		o.Owner = fmt.Sprintf("owner-%016x", uint64(i)*0x9e3779b97f4a7c15)
		p.Apply(&o)
	}
	p.Digest()
}
