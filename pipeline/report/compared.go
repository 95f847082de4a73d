package report

import (
	"cmp"
	"maps"
	"slices"
)

// compared is a strategy as tables and plots show it.
type compared struct {
	Name, Text, Unknown string
	*Figures
}

// order is how strategies stand in tables: what was, the paper's two, others.
var order = []string{AsItWas, Reference, "distance-only", "volley", "akkio-like"}

// compared returns the report's own strategy, then the others.
func (r *Report) compared() []compared {
	out := []compared{{Name: r.Strategy, Text: r.Text, Figures: &r.Figures}}
	if r.Kind == KindReplay {
		out[0].Name = "this replay"
	}
	rank := func(name string) int {
		if i := slices.Index(order, name); i >= 0 {
			return i
		}
		return len(order)
	}
	names := slices.SortedFunc(maps.Keys(r.Baselines), func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
	})
	for _, name := range names {
		b := r.Baselines[name]
		out = append(out, compared{Name: name, Text: b.Text, Unknown: b.Unknown, Figures: &b.Figures})
	}
	return out
}
