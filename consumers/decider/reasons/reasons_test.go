package reasons_test

import (
	"fmt"
	"slices"
	"testing"

	"penstock/consumers/decider/reasons"
	"penstock/schemas/control"
)

func printed(list []control.Reason) []string {
	out := []string{}
	for _, r := range list {
		out = append(out, fmt.Sprintf("%s %s %d %s", r.Code, r.Scope, r.Count, r.Text))
	}
	return out
}

func filled() *reasons.List {
	r := reasons.New([]string{"First", "Second"}, 2)
	r.Count("Second", 2, "rows")
	r.Count("Second", 3, "rows of 5")
	r.Add("Unlisted", "x", nil, "nobody sees it")
	for _, scope := range []string{"b", "a", "d", "c"} {
		r.Add("First", scope, nil, "about %s", scope)
	}
	return r
}

func TestCodesInTheirOrderAndOnlySoManyOfEach(t *testing.T) {
	want := []string{"First b 1 about b", "First a 1 about a", "First  2 and more of them", "Second  5 rows of 5"}
	if got := printed(filled().All()); !slices.Equal(got, want) {
		t.Errorf("got %q\nexpected %q", got, want)
	}
	want[0], want[1] = want[1], want[0]
	if got := printed(filled().ByScope()); !slices.Equal(got, want) {
		t.Errorf("by scope: got %q\nexpected %q", got, want)
	}
}

// A record holds a list, not null.
func TestNoReasonIsAnEmptyList(t *testing.T) {
	if got := reasons.New(nil, 1).All(); got == nil || len(got) != 0 {
		t.Errorf("got %#v", got)
	}
}
