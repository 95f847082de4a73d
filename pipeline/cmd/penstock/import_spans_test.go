package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const zipkinCall = `[{"traceId":"1","id":"2","kind":"CLIENT","timestamp":1600000000000000,"duration":500,"localEndpoint":{"serviceName":"shop"},"tags":{"dc":"eu-1"}},
{"traceId":"1","id":"2","kind":"SERVER","timestamp":1600000000000100,"duration":300,"shared":true,"localEndpoint":{"serviceName":"cart"},"tags":{"dc":"us-1"}},
{"traceId":"1","id":"3","parentId":"2","kind":"CLIENT","timestamp":1600000000000150,"duration":100,"localEndpoint":{"serviceName":"cart"},"remoteEndpoint":{"serviceName":"db"}},
{"traceId":"x","id":"2"}]`

// TestImportSpans imports calls by rules of one's own, and prints what became of
// each span.
func TestImportSpans(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in, out := filepath.Join(dir, "spans.json"), filepath.Join(dir, "rec.jsonl")
	writeFile(t, in, zipkinCall)
	text, errs, code := command(t, "import", "spans", in, "-o", out, "--site-from", `dc=^(..)-`, "--site-from", "=home", "--site", "us=us-east", "--service", "own")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	for _, want := range []string{"2 requests", "4 spans = 2 call + 1 half + 1 malformed, in 1 traces", "1 calls with one half alone"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	if !strings.Contains(errs, "line 4") {
		t.Errorf("the bad span is not told: %s", errs)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	for i, want := range []string{
		`"from_component":"cart","from_site":"home","to_component":"db"`,
		`"from_component":"shop","from_site":"eu","to_component":"cart","to_site":"us-east"`,
	} {
		if len(lines) != 2 || !strings.Contains(lines[i], want) {
			t.Errorf("got %s, expected %s", lines, want)
		}
	}
	if !strings.Contains(lines[1], `"service_us":200`) || !strings.Contains(lines[1], `"network_us":200`) {
		t.Errorf("its own time is 300 less the 100 it waited for: %s", lines[1])
	}
}

func TestImportSpansForMachines(t *testing.T) {
	t.Parallel()
	in := filepath.Join(t.TempDir(), "spans.json")
	writeFile(t, in, zipkinCall)
	text, errs, code := command(t, "--json", "import", "spans", in, "-o", filepath.Join(t.TempDir(), "r.parquet"))
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	var got struct {
		Spans, Traces int64
		Account       map[string]int64
	}
	if err := json.Unmarshal([]byte(text[strings.Index(text, "{"):]), &got); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if got.Spans != 4 || got.Traces != 1 || got.Account["call"] != 2 || got.Account["half"] != 1 || got.Account["malformed"] != 1 {
		t.Errorf("%+v", got)
	}
}

func TestImportSpansRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in, other := filepath.Join(dir, "spans.json"), filepath.Join(dir, "other.json")
	writeFile(t, in, zipkinCall)
	writeFile(t, other, `{"a":1}`)
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{in, "-o", in + ".parquet", "--strict"}, 1, "strict"},
		{[]string{in, "-o", in + ".parquet", "--site-from", "a=("}, 2, "--site-from"},
		{[]string{in, "-o", in}, 2, "is read"},
		{[]string{other, "-o", in + ".parquet"}, 1, "--format"},
		{[]string{in, "-o", in + ".parquet", "--format", "xml"}, 2, "--format"},
	} {
		_, errs, code := command(t, append([]string{"import", "spans"}, c.args...)...)
		if code != c.code || !strings.Contains(errs, c.says) {
			t.Errorf("%q: exit code %d, %s; expected %d and %q", c.args, code, errs, c.code, c.says)
		}
		if _, err := os.Stat(in + ".parquet"); err == nil {
			t.Errorf("%q: a recording is there", c.args)
		}
	}
}
