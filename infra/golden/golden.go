// Package golden runs the golden scripts of tests: files of commands with what
// comes of them, that people read as the specification and tests hold the code
// to. The commands are the test's own; the files, their format, the comparison
// and the writing anew are here.
//
// A script of [Scripts] is steps apart by empty lines. A step is lines of input
// and, if anything comes of them, a line of four dashes with the output below:
//
//	# A comment, and two lines of input.
//	window 12:00 requests=40
//	decide
//	----
//	move a from west to east
//
//	decide
//	----
//	nothing
//
// A script of [Marked] has the output below each line of input, behind a mark
// that no input begins with:
//
//	decide
//	> move a from west to east
//
// With -update a test writes its scripts anew, with the output that they have
// now, in place of comparing; the difference in version control is what a
// reviewer reads. Everything that is not output stays as it is.
//
// A test fails if no file matches, if a script's output differs, which it shows
// by the lines, or if an output could not be read back. One script is one
// subtest, named by its file; a script whose test stops is not written.
package golden

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden scripts anew")

// rule is the line between a step's input and its output.
const rule = "----"

// Step runs one step's lines of input, without comments, and returns what comes
// of them; "" for nothing, and no empty line, which would end the output.
type Step func(lines []string) string

// EachLine is the step whose output is that of its lines, one after another.
func EachLine(do func(line string) string) Step {
	return func(lines []string) string {
		var out strings.Builder
		for _, line := range lines {
			out.WriteString(do(line))
		}
		return out.String()
	}
}

// Scripts runs the scripts that the pattern matches (see [filepath.Glob]). For
// each, start makes anew what the script drives, with the subtest to fail by.
func Scripts(t *testing.T, pattern string, start func(t *testing.T) Step) {
	t.Helper()
	each(t, pattern, func(t *testing.T, text string) (string, error) { return steps(text, start(t)) })
}

// Marked runs the scripts that the pattern matches, whose lines of output begin
// with mark. For each, start makes anew what runs a line of input and returns
// what comes of it; "" for nothing.
func Marked(t *testing.T, pattern, mark string, start func(t *testing.T) func(line string) string) {
	t.Helper()
	each(t, pattern, func(t *testing.T, text string) (string, error) { return marked(text, mark, start(t)), nil })
}

// File compares a text with the file of that name in testdata; with -update it writes it.
func File(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s:\n%s\nexpected\n%s", name, got, want)
	}
}

// each makes a subtest of each file. The function returns a script's text with
// the output that it has now.
func each(t *testing.T, pattern string, play func(t *testing.T, text string) (string, error)) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no script is %s: %v", pattern, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)), func(t *testing.T) {
			err := hold(file, *update, func(text string) (string, error) { return play(t, text) })
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// hold compares the file with what it becomes, or writes it.
func hold(file string, write bool, play func(text string) (string, error)) error {
	want, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	got, err := play(string(want))
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", file, err)
	case got == string(want):
		return nil
	case write:
		return os.WriteFile(file, []byte(got), 0o644)
	}
	return fmt.Errorf("%s, %s(run with -update and read the difference)", file, difference(string(want), got))
}

// steps returns a script in the format of Scripts with the output of its steps.
func steps(text string, do Step) (string, error) {
	var out strings.Builder
	var step []string
	answer := func() error {
		if len(step) == 0 {
			return nil
		}
		first := step[0]
		printed := do(step)
		step = nil
		if printed == "" {
			return nil
		}
		printed = strings.TrimSuffix(printed, "\n")
		for line := range strings.SplitSeq(printed, "\n") {
			if blank(line) {
				return fmt.Errorf("the output of the step %q has an empty line:\n%s", first, printed)
			}
		}
		out.WriteString(rule + "\n" + printed + "\n")
		return nil
	}
	old := false // what came of the step the last time, up to an empty line
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if old && !blank(line) {
			continue
		}
		old = line == rule
		if old || blank(line) {
			if err := answer(); err != nil {
				return "", err
			}
		} else if !strings.HasPrefix(line, "#") {
			step = append(step, line)
		}
		if !old {
			out.WriteString(line + "\n")
		}
	}
	if err := answer(); err != nil {
		return "", err
	}
	return out.String(), nil
}

// marked returns a script in the format of Marked with the output of its lines.
func marked(text, mark string, do func(line string) string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, mark) {
			continue
		}
		out.WriteString(line + "\n")
		if blank(line) || strings.HasPrefix(line, "#") {
			continue
		}
		for printed := range strings.Lines(do(line)) {
			out.WriteString(mark + strings.TrimSuffix(printed, "\n") + "\n")
		}
	}
	return out.String()
}

func blank(line string) bool { return strings.TrimSpace(line) == "" }

// difference shows the lines from the first that differs to the last: those
// wanted behind -, those that came behind +.
func difference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	n := 0
	for len(w) > 0 && len(g) > 0 && w[0] == g[0] {
		w, g = w[1:], g[1:]
		n++
	}
	for len(w) > 0 && len(g) > 0 && w[len(w)-1] == g[len(g)-1] {
		w, g = w[:len(w)-1], g[:len(g)-1]
	}
	var out strings.Builder
	fmt.Fprintf(&out, "line %d:\n", n+1)
	for _, line := range w {
		out.WriteString("- " + line + "\n")
	}
	for _, line := range g {
		out.WriteString("+ " + line + "\n")
	}
	return out.String()
}
