package ledger

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// books has one owner with a write of each fate.
func books() *Ledger {
	l := New()
	for _, id := range []string{"kept", "kept too", "refused", "unknown"} {
		l.Sent("ann", id)
	}
	l.Acknowledged("ann", "kept")
	l.Acknowledged("ann", "kept too")
	l.Acknowledged("ann", "kept too") // said twice, and counted once
	l.Refused("ann", "refused")
	return l
}

func TestCheck(t *testing.T) {
	live := func(site string, notes ...string) Copy { return Copy{Site: site, Live: true, Notes: notes} }
	for _, c := range []struct {
		name   string
		found  map[string][]Copy
		faults []string
	}{
		{"all is well", map[string][]Copy{"ann": {live("east", "kept", "kept too")}}, nil},
		{"what nobody knows of may be there", map[string][]Copy{"ann": {live("east", "kept", "unknown", "kept too")}}, nil},
		{"a retired copy may hold anything", map[string][]Copy{"ann": {{Site: "west", Notes: []string{"x"}}, live("east", "kept", "kept too")}}, nil},
		{"lost", map[string][]Copy{"ann": {live("east", "kept too")}}, []string{"an acknowledged write is lost of ann: kept"}},
		{
			"only in a copy that was retired",
			map[string][]Copy{"ann": {{Site: "west", Notes: []string{"kept"}}, live("east", "kept too")}},
			[]string{"an acknowledged write is lost of ann: kept"},
		},
		{
			"doubled",
			map[string][]Copy{"ann": {live("east", "kept", "kept", "kept too", "kept", "unknown", "unknown")}},
			[]string{"a write is there twice of ann: kept at east", "a write is there twice of ann: unknown at east"},
		},
		{
			"refused, and yet written",
			map[string][]Copy{"ann": {live("east", "kept", "refused", "kept too")}},
			[]string{"a write that was refused is there of ann: refused at east"},
		},
		{
			"foreign",
			map[string][]Copy{"ann": {live("east", "kept", "kept too", "ben's")}, "ben": {live("west", "y")}},
			[]string{"a write that nobody sent is there of ann: ben's at east", "a write that nobody sent is there of ben: y at west"},
		},
		{
			"no copy",
			map[string][]Copy{"ann": {{Site: "east", Notes: []string{"kept", "kept too"}}}},
			[]string{"an acknowledged write is lost of ann: kept", "an acknowledged write is lost of ann: kept too", "there is no live copy of ann"},
		},
		{
			"two live copies",
			map[string][]Copy{"ann": {live("west"), live("east", "kept", "kept too")}},
			[]string{"there is another live copy of ann at west"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := books().Check(c.found)
			var got []string
			for _, f := range v.Faults {
				got = append(got, f.String())
			}
			if !slices.Equal(got, c.faults) {
				t.Errorf("%q, expected %q", got, c.faults)
			}
			if n := books().Total(); n != 2 {
				t.Errorf("%d acknowledged", n)
			}
			if v.Owners != 1 || v.Sent != 4 || v.Acknowledged != 2 || v.Refused != 1 || v.Unknown != 1 {
				t.Errorf("%+v", v)
			}
		})
	}
}

func TestOwnersWithoutWrites(t *testing.T) {
	l := New()
	l.Owner("ann")
	if v := l.Check(map[string][]Copy{"ann": {{Site: "east", Live: true}}}); len(v.Faults) != 0 || v.Owners != 1 {
		t.Errorf("%+v", v)
	}
	if v := l.Check(nil); len(v.Faults) != 1 || v.Faults[0].What != NoCopy {
		t.Errorf("%+v", v)
	}
	if l.Kept("ann") != 0 || l.Kept("nobody") != 0 {
		t.Error("writes of nobody")
	}
}

// TestCheckFindsWhatWasDone damages what a faithful store would hold in one way
// and looks whether that, and nothing else, is found.
func TestCheckFindsWhatWasDone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := New()
		found := map[string][]Copy{}
		owners := rapid.IntRange(1, 4).Draw(t, "owners")
		kept := map[string][]string{}
		for o := range owners {
			owner := fmt.Sprint("owner ", o)
			l.Owner(owner)
			var notes []string
			for n := range rapid.IntRange(1, 6).Draw(t, "writes") {
				id := fmt.Sprint("write ", n)
				l.Sent(owner, id)
				switch rapid.IntRange(0, 3).Draw(t, "fate") {
				case 0:
					l.Refused(owner, id)
				case 1: // nobody knows
					if rapid.Bool().Draw(t, "there") {
						notes = append(notes, id)
					}
				default:
					l.Acknowledged(owner, id)
					notes = append(notes, id)
					kept[owner] = append(kept[owner], id)
				}
			}
			if l.Kept(owner) != len(kept[owner]) {
				t.Fatalf("%d kept, expected %d", l.Kept(owner), len(kept[owner]))
			}
			found[owner] = []Copy{{Site: "east", Live: true, Notes: notes}}
		}
		if v := l.Check(found); len(v.Faults) != 0 {
			t.Fatalf("of a faithful store: %v", v.Faults)
		}
		victim := fmt.Sprint("owner ", rapid.IntRange(0, owners-1).Draw(t, "victim"))
		c := &found[victim][0]
		var want Fault
		switch damage := rapid.IntRange(0, 2).Draw(t, "damage"); {
		case damage == 0 && len(kept[victim]) > 0:
			id := rapid.SampledFrom(kept[victim]).Draw(t, "lost")
			c.Notes = slices.DeleteFunc(slices.Clone(c.Notes), func(n string) bool { return n == id })
			want = Fault{Owner: victim, Write: id, What: Lost}
		case damage == 1 && len(c.Notes) > 0:
			id := rapid.SampledFrom(c.Notes).Draw(t, "doubled")
			c.Notes = append(slices.Clone(c.Notes), id)
			want = Fault{Owner: victim, Site: "east", Write: id, What: Doubled}
		default:
			c.Notes = append(slices.Clone(c.Notes), "somebody else's")
			want = Fault{Owner: victim, Site: "east", Write: "somebody else's", What: Foreign}
		}
		if v := l.Check(found); len(v.Faults) != 1 || v.Faults[0] != want {
			t.Fatalf("%v, expected %v", v.Faults, want)
		}
	})
}
