package main

import (
	"os/exec"
	"strings"
	"testing"
)

// TestCompletionCompletes asks a real shell what it would offer.
func TestCompletionCompletes(t *testing.T) {
	script := must(t, "completion", "bash")
	for line, want := range map[string]string{
		"penstock re":                      "replay",
		"penstock replay --part":           "--partitions",
		"penstock import check":            "checkins",
		"penstock import checkins x --fri": "--friends",
		"penstock mode placement ad":       "advise",
	} {
		words := strings.Fields(line)
		quoted := `"` + strings.Join(words, `" "`) + `"`
		ask := script + "\nCOMP_WORDS=(" + quoted + "); COMP_CWORD=" + string(rune('0'+len(words)-1)) + "; _penstock; printf '%s\\n' \"${COMPREPLY[@]}\"\n"
		out, err := exec.CommandContext(t.Context(), "bash", "-c", ask).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if !strings.Contains("\n"+string(out), "\n"+want+"\n") {
			t.Errorf("%q offers\n%s, expected %s", line, out, want)
		}
	}
}
