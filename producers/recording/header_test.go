package recording

import (
	"errors"
	"io"
	"strings"
	"testing"

	"penstock/schemas/event"
)

// Tables of other tools: tabs or semicolons, names in capitals, blanks.
func TestSeparatorIsToldByTheHeaderRow(t *testing.T) {
	for name, content := range map[string]string{
		"commas":               "time,op,bytes,owner\n1,write,5,\"o; 1\"\n",
		"tabs":                 "time\top\tbytes\towner\n1\twrite\t5\to; 1\n",
		"tabs, CR LF":          "time\top\tbytes\towner\r\n1\twrite\t5\to; 1\r\n",
		"tabs, quotes":         "\"time\"\t\"op\"\t\"bytes\"\t\"owner\"\n1\twrite\t5\t\"o; 1\"\n",
		"semicolons":           "time;op;bytes;owner\n1;write;5;\"o; 1\"\n",
		"semicolons, BOM":      "\ufefftime;op;bytes;owner\n1;write;5;\"o; 1\"\n",
		"semicolons, quotes":   "\"time\";\"op\";\"bytes\";\"owner\"\n\"1\";\"write\";\"5\";\"o; 1\"\n",
		"blank line first":     "\n\ntime\top\tbytes\towner\n1\twrite\t5\to; 1\n",
		"capitals and blanks":  "Time, OP , Bytes,Owner\n1,write,5,o; 1\n",
		"comma in a quote":     "time;op;bytes;owner;\"a,b\"\n1;write;5;\"o; 1\";x\n",
		"tabs and semicolons":  "time\top\tbytes\towner\ta;b\n1\twrite\t5\to; 1\tx\n",
		"capitals, semicolons": "BYTES;OWNER;TIME;OP\n5;\"o; 1\";1;WRITE\n",
	} {
		// Told by content as well as when it is said to be CSV.
		for _, format := range []Format{Auto, CSV} {
			got := readAll(t, Options{Format: format}, save(t, "x", []byte(content)))
			if len(got.rows) != 1 || len(got.bad) > 0 || !errors.Is(got.err, io.EOF) {
				t.Errorf("%s: %v, %v", name, got, got.err)
				continue
			}
			if r := got.rows[0]; r.Time != 1_000_000 || r.Op != event.Write || r.Bytes != 5 || r.Owner != "o; 1" {
				t.Errorf("%s: %s", name, describe(&r))
			}
		}
	}
	for content, want := range map[string]string{
		"time;op\n1;read\n":            "header row has no column bytes",
		"time\top\tbytes\tTIME\n":      "column time is named twice",
		"time|op|bytes\n1|read|1\n":    "header row has no column time",
		"time;op,bytes\n1;read,1\n":    "header row has no column time",
		"time\top\tby\"tes\n1\tr\t1\n": "header row: got",
	} {
		if got := readAll(t, Options{Format: CSV}, save(t, "x", []byte(content))); !errors.Is(got.err, ErrNothingParses) || !strings.Contains(got.err.Error(), want) {
			t.Errorf("%q: %v", content, got.err)
		}
	}
	// A row that is short of a field is so with each separator.
	got := readAll(t, Options{}, save(t, "x.tsv", []byte("time\top\tbytes\n1\tread\n2\tread\t\n3\tread\t1\n")))
	if len(got.rows) != 1 || len(got.bad) != 2 || got.bad[0].Field != "record" || got.bad[1].Field != "bytes" {
		t.Errorf("%v", got)
	}
}

func TestOperationsOfOtherTools(t *testing.T) {
	for text, want := range map[string]event.Op{
		"read": event.Read, "Read": event.Read, "READ": event.Read, "write": event.Write, "WRITE": event.Write,
		"GET": event.Read, "get": event.Read, "HEAD": event.Read, "PROPFIND": event.Read,
		"POST": event.Write, "Put": event.Write, "DELETE": event.Write, "patch": event.Write, "updateredirectref": event.Write,
	} {
		if op, ok := parseOp([]byte(text)); !ok || op != want {
			t.Errorf("%s: got %s, %v, expected %s", text, op, ok, want)
		}
	}
	for _, text := range []string{"", "r", "peek", "GETS", " GET", "écrire", strings.Repeat("GET", 100)} {
		if op, ok := parseOp([]byte(text)); ok {
			t.Errorf("%q: got %s, expected none", text, op)
		}
	}
	post := []byte("post")
	if n := testing.AllocsPerRun(100, func() { parseOp(post) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
	const object = `{"time":1,"op":"POST","bytes":1}` + "\n" + `{"time":2,"op":"get","bytes":1}` + "\n" + `{"time":3,"op":"fetch","bytes":1}`
	got := readAll(t, Options{}, save(t, "x.jsonl", []byte(object)))
	if len(got.rows) != 2 || got.rows[0].Op != event.Write || got.rows[1].Op != event.Read || len(got.bad) != 1 || got.bad[0].Got != "fetch" {
		t.Errorf("%v", got)
	}
}
