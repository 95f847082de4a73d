package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"penstock/pipeline/report"
)

const nginxLine = `192.0.2.1 [01/Jan/2020:00:00:01 +0000] "PUT /a/b HTTP/1.1" 201 17 10.0.0.1:80, 10.0.0.2:80 0.010, 0.250 0.300`

const nginxString = `$remote_addr [$time_local] "$request" $status $body_bytes_sent $upstream_addr $upstream_response_time $request_time`

// TestImportAccesslog imports a log by a format string, by a file of one, and by
// what its lines look like.
func TestImportAccesslog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	writeFile(t, file("own.log"), nginxLine+"\n"+nginxLine+"x\n")
	writeFile(t, file("ours.yaml"), "lines: [{nginx: '"+nginxString+"'}]\ncolumns: {owner: {default: all}}\n")
	writeFile(t, file("combined.log"), `192.0.2.1 - - [01/Jan/2020:00:00:01 +0000] "GET /c HTTP/1.1" 200 5 "-" "-"`+"\n")
	writeFile(t, file("local.log"), `192.0.2.1:5 [14/Jan/2015:12:00:00.000] fe be/s1 0/0/0/3/3 200 7 - - ---- 0/0/0/0/0 0/0 "GET /d HTTP/1.1"`+"\n")
	for _, c := range []struct {
		args      []string
		row, says string
	}{
		{
			[]string{file("own.log"), "--format", "nginx:" + nginxString},
			`"2020-01-01T00:00:01Z"|write|a|201|17|10.0.0.2:80|250000|50000`, "malformed: 1 lines",
		},
		{[]string{file("own.log"), "--format", file("ours.yaml")}, `"2020-01-01T00:00:01Z"|write|all|201|17|10.0.0.2:80|250000|50000`, "format ours (named)"},
		{[]string{file("combined.log")}, `"2020-01-01T00:00:01Z"|read|c|200|5|||`, "combined.log: format combined (confidence 1.00: 1 of the first 1 lines)"},
		{[]string{file("local.log"), "--zone", "Europe/Zurich"}, `"2015-01-14T11:00:00.003Z"|read|d|200|7|s1|3000|0`, "format haproxy"},
	} {
		out := file("out.jsonl")
		_, errs, code := command(t, append(append([]string{"import", "accesslog"}, c.args...), "-o", out)...)
		if code != 0 || !strings.Contains(errs, c.says) {
			t.Errorf("%q: exit code %d, %s", c.args, code, errs)
			continue
		}
		b, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		var r struct {
			Time          json.RawMessage
			Op, Owner     string
			Status, Bytes json.Number
			ToServer      string      `json:"to_server"`
			ServiceUs     json.Number `json:"service_us"`
			NetworkUs     json.Number `json:"network_us"`
		}
		if err := json.Unmarshal([]byte(strings.TrimSpace(string(b))), &r); err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		got := strings.Join([]string{string(r.Time), r.Op, r.Owner, r.Status.String(), r.Bytes.String(), r.ToServer, r.ServiceUs.String(), r.NetworkUs.String()}, "|")
		if got != c.row {
			t.Errorf("%q\n got %s\nwant %s", c.args, got, c.row)
		}
	}
}

// TestImportExplain says for the first lines what became of each field, for
// people and for machines.
func TestImportExplain(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "own.log")
	writeFile(t, log, nginxLine+"\nx\n"+nginxLine+"\n")
	args := []string{"import", "accesslog", log, "--explain", "--format", "nginx:" + nginxString, "--lines", "2", "--user-key", "k"}
	out := must(t, args...)
	for _, want := range []string{
		"(named)\nline 1\n", "line 2: no row: column 1, field remote_addr: got \"x\"",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	fields := strings.Join(strings.Fields(out), " ")
	for _, want := range []string{
		"remote_addr 192.0.2.1 client user=", "upstream_addr 10.0.0.1:80, 10.0.0.2:80 to_server to_server=10.0.0.2:80",
		"request_time 0.300 total_us service_us=250000 network_us=50000",
	} {
		if !strings.Contains(fields, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	var files []explainedFile
	if err := json.Unmarshal([]byte(must(t, append([]string{"--json"}, args...)...)), &files); err != nil {
		t.Fatal(err)
	}
	if len(files) != 1 || len(files[0].Records) != 2 || files[0].Records[0].Fault != "" || files[0].Records[1].Fault == "" || files[0].Matched != 2 || files[0].Lines != 3 {
		t.Errorf("%+v", files)
	}
	if f := files[0].Records[0].Fields[0]; f.Field != "remote_addr" || f.Value != "192.0.2.1" || f.Column != "client" || !strings.HasPrefix(f.Result, "user=") {
		t.Errorf("%+v", f)
	}
	// Nothing is written, and nothing needs to be named for that.
	if _, errs, code := command(t, "import", "accesslog", log); code != 2 || !strings.Contains(errs, "--output") {
		t.Errorf("exit code %d, %s", code, errs)
	}
	for _, c := range [][2]string{{"--format=nothing", "expected alb"}, {"--format=nginx:$", "is no variable"}, {"--zone=Nowhere", "--zone"}, {"--format=nginx:$request", "nothing fills the column time"}} {
		if _, errs, code := command(t, "import", "accesslog", log, "--explain", c[0]); code != 2 || !strings.Contains(errs, c[1]) {
			t.Errorf("%s: exit code %d, %s", c[0], code, errs)
		}
	}
}

// TestFormatsOfLogsEverywhere: what import accesslog takes as a format and a zone,
// import recording and replay take, too. Both tell runs of a replay apart, for the
// rows follow from them.
func TestFormatsOfLogsEverywhere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log, own := filepath.Join(dir, "a.log"), filepath.Join(dir, "own.yaml")
	writeFile(t, log, "2024-01-14 12:30:00 GET /d 200\n2024-01-14 12:31:00 GET /d 200\n")
	const format = "nginx:$time $request_method $uri $status"
	rules := "lines: [{text: '{day} {clock} {method} {path} {status}'}]\ncolumns: {time: {expr: 'field(\"day\") + \" \" + field(\"clock\")'}, method: method, target: path, status: status, owner: {default: %s}}\n"
	writeFile(t, own, fmt.Sprintf(rules, "ann"))

	out := filepath.Join(dir, "out.jsonl")
	must(t, "import", "recording", log, "--format", own, "--zone", "Europe/Zurich", "-o", out)
	if b, err := os.ReadFile(out); err != nil || !strings.Contains(string(b), `"2024-01-14T11:30:00Z"`) || !strings.Contains(string(b), `"owner":"ann"`) {
		t.Errorf("%s, %v", b, err)
	}

	runs := map[string]bool{}
	replayed := func(args ...string) *report.Report {
		to := t.TempDir()
		must(t, append([]string{"replay", log, "-c", example("world.yaml"), "--out", to}, args...)...)
		r := readReport(t, to)
		runs[r.Run] = true
		return r
	}
	for range 2 { // The same again is the same run.
		if r := replayed("--format", own); r.Account.Counted != 2 || r.Windows[0].Start.Format(time.TimeOnly) != "12:00:00" {
			t.Errorf("counted %d, first window %s", r.Account.Counted, r.Windows[0].Start)
		}
	}
	if r := replayed("--format", own, "--zone", "Europe/Zurich"); r.Account.Counted != 2 || r.Windows[0].Start.Format(time.TimeOnly) != "11:00:00" {
		t.Errorf("counted %d, first window %s", r.Account.Counted, r.Windows[0].Start)
	}
	writeFile(t, own, fmt.Sprintf(rules, "ben")) // the same name, other rules
	replayed("--format", own)
	if len(runs) != 3 {
		t.Errorf("%d runs: %v", len(runs), runs)
	}
	for _, c := range [][2]string{{"--format=nothing", "expected parquet"}, {"--format=" + format, "nothing fills the column time"}, {"--zone=Nowhere", "zone"}, {"--zone=Local", "name it"}} {
		if _, errs, code := command(t, "replay", log, "-c", example("world.yaml"), "--out", t.TempDir(), c[0]); code != 2 || !strings.Contains(errs, c[1]) {
			t.Errorf("%s: exit code %d, %s", c[0], code, errs)
		}
	}
}
