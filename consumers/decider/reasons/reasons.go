// Package reasons holds the reasons of one window's decision: what was done and what was
// not, in a fixed order of codes, and never more of a code than a record should hold.
//
// States: a List collects, and All reads it. Nothing in it fails. It is used by one
// goroutine, for one window.
package reasons

import (
	"cmp"
	"fmt"
	"slices"

	"penstock/schemas/control"
)

// List is the reasons of a window.
type List struct {
	codes  []string
	most   int
	scoped map[string][]control.Reason
	counts map[string]int64
	texts  map[string]string
}

// New makes an empty list. Codes is the order of reasons, each with all its reasons; one
// of another code is not listed. Most is how many reasons of a code stand by themselves;
// the rest is counted together.
func New(codes []string, most int) *List {
	return &List{codes: codes, most: most, scoped: map[string][]control.Reason{}, counts: map[string]int64{}, texts: map[string]string{}}
}

// Add notes one reason with the scope that it is about.
func (r *List) Add(code, scope string, evidence map[string]any, format string, args ...any) {
	if len(r.scoped[code]) >= r.most {
		r.Count(code, 1, "and more of them")
		return
	}
	r.scoped[code] = append(r.scoped[code], control.Reason{Code: code, Scope: scope, Count: 1, Evidence: evidence, Text: fmt.Sprintf(format, args...)})
}

// Count adds to a number of which only the sum is of interest; text is the last one.
func (r *List) Count(code string, n int64, text string) {
	r.counts[code] += n
	r.texts[code] = text
}

// All returns the reasons by code, those of a code in the order of their coming, its
// count last.
func (r *List) All() []control.Reason {
	out := []control.Reason{}
	for _, c := range r.codes {
		out = append(out, r.scoped[c]...)
		if r.counts[c] > 0 {
			out = append(out, control.Reason{Code: c, Count: r.counts[c], Text: r.texts[c]})
		}
	}
	return out
}

// ByScope returns the reasons as All does, but those of a code by scope, where the order
// of their coming means nothing.
func (r *List) ByScope() []control.Reason {
	for _, c := range r.codes {
		slices.SortStableFunc(r.scoped[c], func(a, b control.Reason) int { return cmp.Compare(a.Scope, b.Scope) })
	}
	return r.All()
}
