package golden

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// say is the function of the tests: "say X" says X, "hush" nothing.
func say(line string) string {
	if text, ok := strings.CutPrefix(line, "say "); ok {
		return strings.ReplaceAll(text, "/", "\n") + "\n"
	}
	return ""
}

// TestSteps: what stands below a rule is replaced up to the empty line, and
// nothing else changes.
func TestSteps(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ in, want string }{
		"as it is":             {"say a\n----\na\n", "say a\n----\na\n"},
		"output is replaced":   {"say a/b\n----\nx\ny\nz\n\nhush\n", "say a/b\n----\na\nb\n\nhush\n"},
		"output is new":        {"say a\n\nsay b", "say a\n----\na\n\nsay b\n----\nb\n"},
		"output is gone":       {"hush\n----\nx\n\nsay b\n", "hush\n\nsay b\n----\nb\n"},
		"of all lines":         {"say a\nhush\nsay b\n", "say a\nhush\nsay b\n----\na\nb\n"},
		"comments stay":        {"# say x\n\n# one\nsay a\n# two\n", "# say x\n\n# one\nsay a\n# two\n----\na\n"},
		"empty lines stay":     {"\n\nsay a\n----\na\n\n\n\nhush\n\n", "\n\nsay a\n----\na\n\n\n\nhush\n\n"},
		"input in old output":  {"hush\n----\nsay a\n", "hush\n"},
		"a rule in old output": {"say a\n----\n----\nb\n", "say a\n----\na\n"},
		"output is a rule":     {"say a/----/b\n----\na\n----\nb\n", "say a/----/b\n----\na\n----\nb\n"},
		"an end is missing":    {"say a\n----\na", "say a\n----\na\n"},
		"nothing":              {"", ""},
	} {
		got, err := steps(c.in, EachLine(say))
		if err != nil || got != c.want {
			t.Errorf("%s: %v, got\n%q\nwant\n%q", name, err, got, c.want)
		}
		if again, err := steps(got, EachLine(say)); err != nil || again != got {
			t.Errorf("%s: %v, written anew\n%q\nbecame\n%q", name, err, got, again)
		}
	}
}

func TestAStepIsItsLines(t *testing.T) {
	t.Parallel()
	var ran []string
	_, err := steps("a\n# x\nb\n----\nx\n\n\n# y\n\n  c\n\nd\n", func(lines []string) string {
		ran = append(ran, strings.Join(lines, "+"))
		return ""
	})
	if want := []string{"a+b", "  c", "d"}; err != nil || !slices.Equal(ran, want) {
		t.Errorf("%v, ran %q, want %q", err, ran, want)
	}
}

// TestAnEmptyLineOfOutput: it would end the output where it is read back, and
// what follows it would be input.
func TestAnEmptyLineOfOutput(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"say a//b", "say a/ /b", "say /a", "say a/", "say "} {
		if got, err := steps(line+"\n", EachLine(say)); err == nil {
			t.Errorf("%q became %q", line, got)
		}
	}
}

func TestMarkedLines(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ in, want string }{
		"as it is":           {"say a\n> a\nhush\n", "say a\n> a\nhush\n"},
		"output is replaced": {"say a/b\n> x\nhush\n> y\n", "say a/b\n> a\n> b\nhush\n"},
		"output is new":      {"say a\n\n# say b\nsay c", "say a\n> a\n\n# say b\nsay c\n> c\n"},
		"an empty line":      {"say a//b\n", "say a//b\n> a\n> \n> b\n"},
	} {
		got := marked(c.in, "> ", say)
		if got != c.want {
			t.Errorf("%s: got\n%q\nwant\n%q", name, got, c.want)
		}
		if again := marked(got, "> ", say); again != got {
			t.Errorf("%s: written anew\n%q\nbecame\n%q", name, got, again)
		}
	}
}

// TestHold: a difference is an error that shows its lines and leaves the file;
// with -update the file is written, but for a script that can't be read back.
func TestHold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text    string
		write   bool
		file    string // afterwards
		failure string // in the error; "" for none
	}{
		"the same":         {text: "say a\n----\na\n", file: "say a\n----\na\n"},
		"differs":          {text: "say a\n----\nb\n", file: "say a\n----\nb\n", failure: "line 3:\n- b\n+ a\n("},
		"differs, -update": {text: "say a\n----\nb\n", write: true, file: "say a\n----\na\n"},
		"empty, -update":   {text: "say a//b\n", write: true, file: "say a//b\n", failure: "empty line"},
	} {
		file := filepath.Join(t.TempDir(), "a.txt")
		if err := os.WriteFile(file, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		err := hold(file, c.write, func(text string) (string, error) { return steps(text, EachLine(say)) })
		if (err != nil) != (c.failure != "") || err != nil && !strings.Contains(err.Error(), c.failure) {
			t.Errorf("%s: %v, want %q", name, err, c.failure)
		}
		if b, err := os.ReadFile(file); err != nil || string(b) != c.file {
			t.Errorf("%s: %v, the file is\n%q", name, err, b)
		}
	}
	if err := hold(filepath.Join(t.TempDir(), "none"), true, nil); err == nil {
		t.Error("a file that isn't there is no error")
	}
}

func TestTheDifference(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ want, got, shown string }{
		{"a\nb\nc\n", "a\nx\ny\nc\n", "line 2:\n- b\n+ x\n+ y\n"},
		{"a\n", "a\nb\n", "line 2:\n+ b\n"},
		{"a\nb\na\n", "a\n", "line 2:\n- b\n- a\n"},
		{"a", "a\n", "line 2:\n+ \n"},
		{"", "a\n", "line 1:\n+ a\n"},
	} {
		if got := difference(c.want, c.got); got != c.shown {
			t.Errorf("%q to %q: got %q, want %q", c.want, c.got, got, c.shown)
		}
	}
}

// TestEveryFileStartsAnew runs scripts by the exported functions, the way that
// tests do.
func TestEveryFileStartsAnew(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"one.txt": "x\n----\n1\n\ny\n----\n2\n", "two.txt": "x\ny\n----\n1\n2\n", "marked.script": "x\n> 1\ny\n> 2\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var ran []string
	counter := func(t *testing.T) func(string) string {
		ran = append(ran, t.Name())
		n := 0
		return func(string) string { n++; return fmt.Sprintln(n) }
	}
	Scripts(t, filepath.Join(dir, "*.txt"), func(t *testing.T) Step { return EachLine(counter(t)) })
	Marked(t, filepath.Join(dir, "*.script"), "> ", counter)
	want := []string{t.Name() + "/one", t.Name() + "/two", t.Name() + "/marked"}
	if !slices.Equal(ran, want) {
		t.Errorf("ran %q, want %q", ran, want)
	}
}
