package mover

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"penstock/schemas/control"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestGoldenVersionRules prints what the rules say about each kind of move for each
// kind of location, and compares it with the golden table.
func TestGoldenVersionRules(t *testing.T) {
	at := func(site string, v uint64) *control.Location {
		return &control.Location{Site: site, Version: v, State: control.Live}
	}
	pinned := at("a", 3)
	pinned.Pinned = true
	pinnedThere := at("b", 4)
	pinnedThere.Pinned = true
	locations := []*control.Location{nil, at("a", 0), at("a", 3), at("a", 4), at("a", 5), at("b", 3), at("b", 4), at("b", 5), at("c", 3), at("c", 4), pinned, pinnedThere}
	moves := []control.Move{move("o", "a", "b", 1), move("o", "a", "b", 4), move("o", "b", "a", 4), move("o", "a", "b", 9)}
	var out strings.Builder
	fmt.Fprintf(&out, "# location           move           ruling\n")
	for _, l := range locations {
		for _, m := range moves {
			name, known := "none", l != nil
			var is control.Location
			if known {
				is, name = *l, fmt.Sprintf("%s at version %d", l.Site, l.Version)
				if l.Pinned {
					name += " pinned"
				}
			}
			ruling, reason := judge(is, known, m)
			line := fmt.Sprintf("%-20s %s→%s to be %-3d %s %s", name, m.From, m.To, m.Version, ruling, reason)
			fmt.Fprintln(&out, strings.TrimRight(line, " "))
		}
	}
	const golden = "testdata/versions.golden"
	if *update {
		ok(t, os.WriteFile(golden, []byte(out.String()), 0o644))
	}
	want, err := os.ReadFile(golden)
	ok(t, err)
	if out.String() != string(want) {
		t.Errorf("the rulings are\n%s\nwant\n%s", out.String(), want)
	}
}

// TestRulesNeverGoBack: whatever moves are asked for in whatever order, carrying
// out what the rules let pass makes versions ascend, each version is applied at
// most once, and repeating any of them changes nothing.
func TestRulesNeverGoBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l control.Location
		known := false
		site := rapid.SampledFrom([]string{"a", "b", "c"})
		applied := map[uint64]control.Move{}
		for range rapid.IntRange(1, 30).Draw(t, "n") {
			m := control.Move{Owner: "o", From: site.Draw(t, "from"), To: site.Draw(t, "to"), Version: rapid.Uint64Range(1, 6).Draw(t, "v")}
			if m.From == m.To {
				continue
			}
			r, reason := judge(l, known, m)
			switch {
			case r == proceed && (known && (m.Version <= l.Version || m.From != l.Site)):
				t.Fatalf("%+v at %+v may proceed", m, l)
			case r == flipped && applied[m.Version].To != m.To:
				t.Fatalf("%+v at %+v is taken for done", m, l)
			case (r == refuse) != (reason != ""):
				t.Fatalf("%v with reason %q", r, reason)
			}
			if r != proceed {
				continue
			}
			l, known = control.Location{Site: m.To, Version: m.Version, State: control.Live}, true
			applied[m.Version] = m
			if again, _ := judge(l, known, m); again != flipped {
				t.Fatalf("the same move again: %v", again)
			}
		}
	})
}
