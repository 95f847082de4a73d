package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"penstock/producers/entry/identify"
)

// TestOwnersOfLogsAndEntryPoints: the mapping that docs/logs.md shows names owners
// as an entry point's rule does, from a request's target as it stands in both.
func TestOwnersOfLogsAndEntryPoints(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/logs.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(page), "### The owners of an entry point\n")
	_, rest, opened := strings.Cut(section, "```yaml\n")
	format, _, closed := strings.Cut(rest, "```")
	if !ok || !opened || !closed {
		t.Fatal("docs/logs.md does not show the mapping")
	}
	rules, err := identify.Compile("owner", []identify.Rule{{Path: "/u/{owner}/**"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	ours, log, out := filepath.Join(dir, "ours.yaml"), filepath.Join(dir, "a.log"), filepath.Join(dir, "a.jsonl")
	var lines strings.Builder
	var want []string
	for i, target := range []string{
		"/u/alice/photos/1", "/u/alice", "/u/alice/", "/u/alice?x=/u/bob", "/u/bob@example.org/x?y", "/u/an%20na/x", "/u/%61lice/x",
		"/u/%C3%A9va", "/u/50%25/x", "/u/", "/u", "/", "/static/u/alice", "/users/alice", "/static/app.js",
	} {
		path, _, _ := strings.Cut(target, "?")
		owner, unusable := rules.Find(&identify.Request{Path: identify.Normal(path)})
		if unusable {
			t.Fatalf("%s: %q cannot be an id", target, owner)
		}
		for _, form := range []string{"", "https://shop.example.org"} { // as proxies are asked, too
			want = append(want, owner)
			fmt.Fprintf(&lines, "192.0.2.1 [2020-01-01T00:00:%02dZ] \"PUT %s%s HTTP/1.1\" 200 1\n", i, form, target)
		}
	}
	writeFile(t, ours, format)
	writeFile(t, log, lines.String())
	must(t, "import", "accesslog", log, "--format", ours, "-o", out)
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	rows, asked := strings.Split(strings.TrimSpace(string(b)), "\n"), strings.Split(lines.String(), "\n")
	if len(rows) != len(want) {
		t.Fatalf("%d rows, expected %d", len(rows), len(want))
	}
	for i, row := range rows {
		var r struct{ Owner string }
		if err := json.Unmarshal([]byte(row), &r); err != nil {
			t.Fatal(err)
		}
		if r.Owner != want[i] {
			t.Errorf("%s: the log says %q, an entry point %q", asked[i], r.Owner, want[i])
		}
	}
}

// TestImportOfFieldsThatAreNot: a format file that names what no line has is the
// caller's mistake, and says where it is.
func TestImportOfFieldsThatAreNot(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log, ours := filepath.Join(dir, "a.log"), filepath.Join(dir, "ours.yaml")
	writeFile(t, log, nginxLine+"\n")
	writeFile(t, ours, "lines:\n  - nginx: '"+nginxString+"'\ncolumns:\n  owner: {from: nosuch}\n")
	_, errs, code := command(t, "import", "accesslog", log, "--explain", "--format", ours)
	want := "penstock: usage: --format: " + log + ": " + ours + ":4: columns: owner: no line has a field nosuch, expected one of " +
		"remote_addr, time_local, request, status, body_bytes_sent, upstream_addr, upstream_response_time, request_time\n"
	if code != 2 || errs != want {
		t.Errorf("exit code %d\n got %s\nwant %s", code, errs, want)
	}
}

// TestImportOfNothing: a log without a line is no fault, but it is said, however its
// format was found and whatever becomes of it.
func TestImportOfNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log, out := filepath.Join(dir, "a.log"), filepath.Join(dir, "a.parquet")
	for _, text := range []string{"", "\n\n\n"} {
		writeFile(t, log, text)
		for _, args := range [][]string{
			{"accesslog", log}, {"accesslog", log, "--format", "combined"}, {"recording", log, "--format", "accesslog"}, {"recording", log},
		} {
			says, errs, code := command(t, append(append([]string{"import"}, args...), "-o", out)...)
			if code != 0 || strings.Count(errs, log+": nothing is in it\n") != 1 || says != out+": 0 requests\n" {
				t.Errorf("%q of %q: exit code %d\n%s\n%s", args, text, code, says, errs)
			}
		}
	}
}
