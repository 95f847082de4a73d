package topology

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"penstock/consumers/decider/placement"
	"penstock/producers/recording"
)

// TestFriends: a file that lists each friendship once and one that lists it both
// ways, in any order, say the same.
func TestFriends(t *testing.T) {
	want := []placement.Friend{
		{Owner: "ann", User: "ben b", Level: 3},
		{Owner: "ann", User: "cat", Level: 1},
		{Owner: "ben b", User: "ann", Level: 3},
		{Owner: "cat", User: "ann", Level: 1},
	}
	for name, text := range map[string]string{
		"once":        "ann\tben b\t3\ncat\tann\n",
		"both ways":   "# Nodes: 3 Edges: 4, as SNAP begins its files\nann\tben b\t3\nben b\tann\t3\nann\tcat\t1\ncat\tann\t1\n",
		"commas":      "cat,ann\neve,eve\nben b,ann,3\n",
		"lesser last": "ann\tben b\t3\nann\tben b\ncat\tann\n",
	} {
		got, err := ReadFriends(t.Context(), write(t, text), func(b recording.BadLine) { t.Errorf("%s: %v", name, &b) })
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// TestFriendsMalformed: lines that cannot be used are told of and change nothing.
func TestFriendsMalformed(t *testing.T) {
	bad := 0
	got, err := ReadFriends(t.Context(), write(t, "a\tb\nc\n\xff\td\ne\tf\t9223372036854775807\ng\th\t0\n"),
		func(recording.BadLine) { bad++ })
	if err != nil || len(got) != 2 || bad != 4 {
		t.Errorf("%v, %v, %d malformed", got, err, bad)
	}
}

func write(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "friends")
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}
