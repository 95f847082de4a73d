package aggregator

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestGoldenScripts runs testdata/scripts/*.txt: blocks of commands, each with
// what comes of them below a line of four dashes.
func TestGoldenScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/scripts/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := runScript(t, string(want))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(want) {
				t.Errorf("%s:\n%s", file, difference(string(want), got))
			}
		})
	}
}

// runScript returns the script with the outputs as they are.
func runScript(t *testing.T, text string) string {
	s := &script{t: t}
	var out strings.Builder
	for n, block := range strings.Split(strings.TrimRight(text, "\n"), "\n\n") {
		if n > 0 {
			out.WriteString("\n")
		}
		commands, _, _ := strings.Cut(block, "\n----")
		s.out.Reset()
		for line := range strings.SplitSeq(commands, "\n") {
			out.WriteString(line + "\n")
			if line != "" && !strings.HasPrefix(line, "#") {
				s.line(line)
			}
		}
		if s.out.Len() > 0 {
			out.WriteString("----\n" + s.out.String())
		}
	}
	return out.String()
}

// difference shows the first line that is not as it should be.
func difference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			return "line " + strings.Join([]string{w[i], g[i]}, "\n is  ")
		}
	}
	return "one is longer than the other:\n" + got
}
