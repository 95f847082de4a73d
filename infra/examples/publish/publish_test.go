package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/schemas/event"
	"penstock/schemas/subject"
)

// interpreter is the path of a program that the examples need.
func interpreter(t *testing.T, name, from string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("the examples need %s, which is not there: install the package %s", name, from)
	}
	return path
}

// nodePackages installs what the JavaScript example needs, as its package.json
// pins it, beside a copy of it.
func nodePackages(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range []string{"package.json", "publish.mjs"} {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, f), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, interpreter(t, "npm", "npm"), "install", "--no-audit", "--no-fund", "--ignore-scripts")
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("npm install: %v\n%s", err, out)
	}
	return dir
}

// row is the n-th request of a test, as an example gets it: 40 owners, of which
// some have names that few expect, some have only users, some have only a trace.
func row(n int) map[string]any {
	r := map[string]any{
		"time": time.Now().UnixMicro(), "op": []string{"read", "write"}[n%2], "bytes": n,
		"to_component": "shop", "to_site": "us-east", "status": 200, "service_us": 1500 + n,
		"trace": fmt.Sprintf("%032x", n+1),
	}
	switch n % 4 {
	case 0:
		r["owner"] = strings.Repeat("é@example.org/", n%5) + fmt.Sprint("owner-", n%40)
	case 1:
		r["owner"], r["user"], r["class"] = fmt.Sprint("owner-", n%40), fmt.Sprint("user-", n%7), `a "class"`
		r["lat"], r["lon"], r["wait_us"], r["network_us"] = 37.5, -122.25, 0, -7
	case 2:
		r["user"] = fmt.Sprint("user-", n%7)
	}
	return r
}

// lines are rows as an example gets them on its standard input.
func lines(t *testing.T, from, n int) []byte {
	t.Helper()
	var b bytes.Buffer
	for i := range n {
		if err := json.NewEncoder(&b).Encode(row(from + i)); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// stored is what a run has left on EVENTS.
type stored struct {
	rows  map[int64]event.Request // by bytes
	all   []event.Request
	seqs  []uint64 // the highest, per partition
	marks []event.Mark
	bad   int64 // lines that were no rows
}

// read reads what is there of all runs, and checks of each batch what docs/wire.md
// asks for.
func read(t *testing.T, b *bus.Bus) map[string]*stored {
	t.Helper()
	c := bustest.Client(t, b)
	runs := map[string]*stored{}
	ctx, cancel := context.WithTimeout(t.Context(), bustest.Timeout)
	defer cancel()
	err := c.Each(ctx, subject.EventsStream, []string{"events.>"}, 0, func(m bus.Msg) error {
		run := m.Header[event.HeaderRun][0]
		s := runs[run]
		if s == nil {
			s = &stored{rows: map[int64]event.Request{}, seqs: make([]uint64, c.Partitions())}
			runs[run] = s
		}
		_, partition, err := subject.Entry(m.Subject)
		if err != nil {
			return err
		}
		if event.IsMark(m.Header) {
			mark, err := event.ParseMark(m.Header, c.Partitions())
			if err == nil && (partition != -1 || !slices.Equal(mark.Upto, s.seqs)) {
				err = fmt.Errorf("mark %+v on partition %d after sequences %v", mark, partition, s.seqs)
			}
			s.marks = append(s.marks, mark)
			return err
		}
		return s.batch(m, partition)
	})
	if err != nil {
		t.Fatal(err)
	}
	return runs
}

func (s *stored) batch(m bus.Msg, partition int) error {
	h, err := event.ParseHeader(m.Header)
	if err != nil {
		return err
	}
	s.bad += h.Malformed
	if s.seqs[partition]++; h.Seq != s.seqs[partition] {
		return fmt.Errorf("%s: sequence %d, expected %d", m.Subject, h.Seq, s.seqs[partition])
	}
	var d event.Decoder
	var batch event.Requests
	if err := d.Decode(m.Data, h.Encoding, &batch); err != nil {
		return fmt.Errorf("%s: %w", m.Subject, err)
	}
	if batch.Len() != h.Rows {
		return fmt.Errorf("%s: %d rows, the header says %d", m.Subject, batch.Len(), h.Rows)
	}
	for i := range batch.Len() {
		r := batch.Row(i)
		if p := event.Partition(r.Owner, r.User, r.Trace, len(s.seqs)); p != partition {
			return fmt.Errorf("row %+v is on partition %d, not %d", r, partition, p)
		}
		s.rows[r.Bytes], s.all = r, append(s.all, r)
	}
	return nil
}

// owners are the rows by their owners.
func (s *stored) owners() map[string]event.Request {
	out := map[string]event.Request{}
	for _, r := range s.all {
		out[r.Owner] = r
	}
	return out
}

// check compares the rows of a run with those that were given to it.
func (s *stored) check(t *testing.T, n int) {
	t.Helper()
	if len(s.rows) != n || len(s.all) != n {
		t.Errorf("%d rows, expected %d", len(s.rows), n)
	}
	for i := range n {
		want, err := json.Marshal(row(i))
		if err != nil {
			t.Fatal(err)
		}
		var expected event.Requests
		if err := new(event.Decoder).Decode(want, event.EncodingJSONL, &expected); err != nil {
			t.Fatal(err)
		}
		e, got := expected.Row(0), s.rows[int64(i)]
		e.Time = got.Time // It is of the moment, and late if the program was slow to start.
		if got.Mark == event.Late {
			e.Mark = event.Late
		}
		if fmt.Sprint(e) != fmt.Sprint(got) {
			t.Fatalf("row %d: got\n%+v\nexpected\n%+v", i, got, e)
		}
	}
	last := s.marks[len(s.marks)-1]
	if last.Kind != event.End || last.Watermark > time.Now().UnixMicro() || last.Watermark < time.Now().Add(-time.Minute).UnixMicro() {
		t.Errorf("the last mark is %+v", last)
	}
}

// TestExamplesInOtherLanguages runs the publishers of docs/wire.md as they are,
// and reads what they leave on a bus.
func TestExamplesInOtherLanguages(t *testing.T) {
	t.Parallel()
	python, node := interpreter(t, "python3", "python3"), interpreter(t, "node", "nodejs")
	for name, command := range map[string]func() *exec.Cmd{
		"python": func() *exec.Cmd { return exec.Command(python, "publish.py") },
		"node": func() *exec.Cmd {
			return exec.Command(node, filepath.Join(nodePackages(t), "publish.mjs"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := bustest.Start(t, func(o *bus.Options) { o.Listen, o.Prefix, o.Partitions = "127.0.0.1:0", "shop", 5 })
			c := command()
			c.Args = append(c.Args, b.URL(), "web-7", "shop")
			out := run(t, b, c)
			runs := read(t, b)
			s := runs[out.Run]
			if len(runs) != 1 || s == nil || !slices.Equal(out.Sequences, s.seqs) {
				t.Fatalf("the publisher says %+v, there are the runs %v", out, slices.Collect(maps.Keys(runs)))
			}
			s.check(t, 400)
			if s.marks[0].Kind != event.Heartbeat {
				t.Errorf("no heartbeat: %+v", s.marks)
			}
		})
	}
}

// TestBadLinesInPython: a line that is no request is named by its number and counted
// on the bus, and the others go on; arguments that are wrong end in how to do it.
func TestBadLinesInPython(t *testing.T) {
	t.Parallel()
	python := interpreter(t, "python3", "python3")
	for _, args := range [][]string{{}, {"nats://127.0.0.1:1"}, {"nats://127.0.0.1:1", "a", "b", "c"}, {"web-7", "nats://127.0.0.1:1"}} {
		c := exec.Command(python, append([]string{"publish.py"}, args...)...)
		out, err := c.CombinedOutput()
		if c.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), "publish.py nats://HOST:PORT ENTRY [PREFIX]") || strings.Contains(string(out), "Traceback") {
			t.Errorf("%q: %v\n%s", args, err, out)
		}
	}
	b := bustest.Start(t, func(o *bus.Options) { o.Listen, o.Partitions = "127.0.0.1:0", 3 })
	bad := []string{
		"not JSON", `["a list"]`, `7`, `{"time": 1`, "\xff", `{"owner": "\ud800"}`, `{"trace": "no hex"}`, `{"trace": 5}`,
		`{"owner": "` + strings.Repeat("x", 600<<10) + `"}`, strings.Repeat("[", 100_000),
	}
	in := lines(t, 0, 2)
	for _, line := range bad {
		in = append(append(in, line...), '\n')
	}
	in = append(append(in, '\n'), lines(t, 2, 2)...)
	ctx, cancel := context.WithTimeout(t.Context(), bustest.Timeout)
	defer cancel()
	var stdout, stderr bytes.Buffer
	c := exec.CommandContext(ctx, python, "publish.py", b.URL(), "web-7")
	c.Stdin, c.Stdout, c.Stderr = bytes.NewReader(in), &stdout, &stderr
	if err := c.Run(); err != nil {
		t.Fatalf("%v\n%s", err, stderr.Bytes())
	}
	var out result
	if err := json.Unmarshal(stdout.Bytes(), &out); err != nil {
		t.Fatalf("%v: %s", err, stdout.Bytes())
	}
	s := read(t, b)[out.Run]
	if s == nil || s.bad != int64(len(bad)) {
		t.Fatalf("%+v, expected %d lines that are malformed\n%s", s, len(bad), stderr.Bytes())
	}
	s.check(t, 4)
	for i := range bad {
		if !strings.Contains(stderr.String(), fmt.Sprintf("line %d is left out: ", i+3)) {
			t.Errorf("line %d is not named:\n%s", i+3, stderr.Bytes())
		}
	}
	if n := strings.Count(stderr.String(), "\n"); n != len(bad) {
		t.Errorf("%d lines are named:\n%s", n, stderr.Bytes())
	}
}

// result is what an example prints at its end.
type result struct {
	Run       string   `json:"run"`
	Sequences []uint64 `json:"sequences"`
}

// run feeds an example: half of the rows, then silence until it has sent a
// heartbeat, then the bus is restarted under it, then the other half.
func run(t *testing.T, b *bus.Bus, c *exec.Cmd) (out result) {
	t.Helper()
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(4*bustest.Timeout, func() { _ = c.Process.Kill() })
	defer kill.Stop()
	if _, err := in.Write(lines(t, 0, 200)); err != nil {
		t.Fatalf("%v\n%s", err, stderr.Bytes())
	}
	r, err := bustest.Client(t, b).Read(t.Context(), subject.EventsStream, []string{"events.all.*"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	bustest.Take(t, r, 1)
	r.Close()
	bustest.Restart(t, b)
	if _, err := in.Write(lines(t, 200, 200)); err != nil {
		t.Fatalf("%v\n%s", err, stderr.Bytes())
	}
	_ = in.Close()
	if err := c.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, stderr.Bytes())
	}
	t.Logf("%s", stderr.Bytes())
	if err := json.Unmarshal(stdout.Bytes(), &out); err != nil {
		t.Fatalf("%v: %s\n%s", err, stdout.Bytes(), stderr.Bytes())
	}
	return out
}
