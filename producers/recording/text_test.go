package recording

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"penstock/infra/golden"
	"penstock/infra/shareddata"
	"penstock/schemas/event"
)

func TestGoldenJSONLines(t *testing.T) {
	golden.File(t, "rows.jsonl.golden", readAll(t, Options{}, "testdata/rows.jsonl").String())
}

func TestGoldenCSV(t *testing.T) {
	golden.File(t, "rows.csv.golden", readAll(t, Options{}, "testdata/rows.csv").String())
}

// Line ends and byte order marks of other systems change nothing but blanks.
func TestLineEndsAndByteOrderMark(t *testing.T) {
	for _, name := range []string{"rows.jsonl", "rows.csv"} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		want := readAll(t, Options{}, save(t, name, data)).String()
		crlf := bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n"))
		if got := readAll(t, Options{}, save(t, name, append([]byte("\ufeff"), crlf...))).String(); got != want {
			t.Errorf("%s with CR LF and a byte order mark:\n%s", name, got)
		}
	}
}

const (
	logLine  = `192.0.2.1 - - [17/May/2015:10:05:%02d +0000] "GET /%s/x HTTP/1.1" 200 17 "-" "-"`
	jsonLine = `{"time":1431857103,"op":"read","bytes":%d}`
)

func TestFormatIsToldByContentThenName(t *testing.T) {
	log := fmt.Sprintf(logLine, 1, "a")
	json := fmt.Sprintf(jsonLine, 1)
	csvText := "op,time,bytes\nread,1431857103,1\n"
	for _, test := range []struct{ name, content string }{
		{"access.log", log},
		{"x", log},
		{"x.1", log},
		{"x", json},
		{"x.log", json},
		{"x", "\n  " + json},
		{"x", csvText},
		{"x.log", csvText},
		{"x.csv", csvText},
		{"x", "op\ttime\tbytes\nread\t1431857103\t1\n"},
		{"x", "op;Time;bytes\nread;1431857103;1\n"},
		{"x", "\"time\",\"op\",\"bytes\"\r\n1431857103,read,1\r\n"},
	} {
		if got := readAll(t, Options{}, save(t, test.name, []byte(test.content))); len(got.rows) != 1 || !errors.Is(got.err, io.EOF) {
			t.Errorf("%s with %.20q: %v, %v", test.name, test.content, got, got.err)
		}
	}
	for name, f := range map[string]Format{"x.csv": CSV, "x.tsv.gz": CSV, "x.ndjson.gz": JSONLines, "x.parquet": Parquet, "x.ARROW": Arrow, "x.log": AccessLog} {
		in, err := openInput(save(t, name, []byte("nonsense")))
		if err != nil {
			t.Fatal(err)
		}
		if got := detect(in, &Options{}); got != f {
			t.Errorf("%s: %s", name, got)
		}
		_ = in.close()
	}
	// What is named holds, whatever the content looks like.
	if got := readAll(t, Options{Format: AccessLog}, save(t, "x.jsonl", []byte(json))); !errors.Is(got.err, ErrNothingParses) {
		t.Errorf("got %v", got.err)
	}
}

func TestRealLog(t *testing.T) {
	file := filepath.Join(shareddata.Dir(t, "apache-logs"), "access.log.gz")
	got := readAll(t, Options{}, file)
	var sum int64
	users := make(map[string]bool)
	dash := 0
	for _, r := range got.rows {
		sum += r.Bytes
		users[r.User] = true
		if r.Bytes == 0 {
			dash++
		}
	}
	if len(got.rows) != 9999 || sum != 2_747_282_505 || len(users) != 1753 || dash != 669 {
		t.Errorf("%d rows, %d bytes, %d users, %d without bytes", len(got.rows), sum, len(users), dash)
	}
	if len(got.bad) != 1 || got.bad[0].Line != 8899 || got.bad[0].Field != "agent" || got.bad[0].File != file {
		t.Errorf("bad lines: %v", got.bad)
	}
	// Neither the compression nor the way to Parquet changes a row.
	path := filepath.Join(t.TempDir(), "rec.parquet")
	write(t, path, got.rows)
	same(t, readAll(t, Options{}, path).rows, got.rows)
}

func TestNothingParses(t *testing.T) {
	lines := func(n int, line string) []byte { return []byte(strings.Repeat(line+"\n", n)) }
	good := fmt.Sprintf(logLine, 1, "a")
	for name, test := range map[string]struct {
		content []byte
		names   string
		bad     int
	}{
		"log of another format": {lines(150, "2021/12/01 [error] x"), "field login", 100},
		"short log":             {lines(3, "nonsense"), "none of the first 3 lines", 3},
		"99 bad, then good":     {append(lines(99, "nonsense"), good...), "", 99},
		"100 bad, then good":    {append(lines(100, "nonsense"), good...), "field host", 100},
		"json":                  {lines(200, `{"time":1,"op":"read"}`), "field bytes", 100},
		"json without times":    {lines(2, `{"a":1}`), "field time", 2},
		"csv":                   {append([]byte("time,op,bytes\n"), lines(100, "soon,read,1")...), `field time: got "soon"`, 100},
		"csv without bytes":     {[]byte("time,op\n1,read\n"), "no column bytes", 0},
		"csv, column twice":     {[]byte("time,op,bytes,time\n"), "column time is named twice", 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := readAll(t, Options{}, save(t, "x", test.content))
			if test.names == "" {
				if !errors.Is(got.err, io.EOF) || len(got.rows) != 1 {
					t.Errorf("got %v", got.err)
				}
			} else if !errors.Is(got.err, ErrNothingParses) || !strings.Contains(got.err.Error(), test.names) {
				t.Errorf("got %v, expected %s", got.err, test.names)
			}
			if len(got.bad) != test.bad {
				t.Errorf("%d bad lines, expected %d", len(got.bad), test.bad)
			}
		})
	}
}

// A file without a row is no error, but most likely not what was meant.
func TestNothingIsInIt(t *testing.T) {
	const header = "time,op,bytes\n"
	for _, file := range []struct{ name, content string }{
		{"x.log", ""}, {"x.jsonl", ""}, {"x.csv", ""}, {"x", "\n\r\n"}, {"x.jsonl", " \n"}, {"x.csv", header}, {"x", header + "\n"}, {"x.tsv", "time\top\tbytes"},
	} {
		path := save(t, file.name, []byte(file.content))
		for _, files := range [][]string{{path}, {path, save(t, "y.csv", []byte(header+"1,read,1\n2,read,1\n"))}} {
			got := readAll(t, Options{}, files...)
			if len(got.rows) != 2*(len(files)-1) || len(got.notes) != 1 || got.notes[0] != "nothing is in it" || !errors.Is(got.err, io.EOF) {
				t.Errorf("%s of %q: %v, %v", file.name, file.content, got, got.err)
			}
		}
	}
}

func TestIDsOfGreatLength(t *testing.T) {
	long := strings.Repeat("o", 5000)
	for name, content := range map[string]string{
		"x.log":   fmt.Sprintf(logLine+"\n"+logLine+"\n"+logLine+"\n", 1, "a", 2, long, 3, "b"),
		"x.jsonl": fmt.Sprintf(`{"time":1,"op":"read","bytes":1}{"time":2,"op":"read","bytes":1,"owner":"%s"}{"time":3,"op":"read","bytes":1}`, long),
		"x.csv":   fmt.Sprintf("time,op,bytes,owner\n1,read,1,a\n2,read,1,%s\n3,read,1,b\n", long),
	} {
		got := readAll(t, Options{}, save(t, name, []byte(content)))
		if len(got.rows) != 2 || len(got.bad) != 1 || got.bad[0].Field != "owner" || len(got.bad[0].Got) > maxGot || !errors.Is(got.err, io.EOF) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestLongLines(t *testing.T) {
	long := strings.Repeat("x", 3<<20)
	for name, content := range map[string]string{
		"x.log":   fmt.Sprintf(logLine+"\n"+logLine+"\n"+logLine+"\n", 1, "a", 2, long, 3, "b"),
		"x.jsonl": fmt.Sprintf(`{"time":1,"op":"read","bytes":1}{"time":2,"op":"read","bytes":1,"owner":"%s"}{"time":3,"op":"read","bytes":1}`, long),
		"x.csv":   fmt.Sprintf("time,op,bytes,owner\n1,read,1,a\n2,read,1,%s\n3,read,1,b\n", long),
	} {
		got := readAll(t, Options{}, save(t, name, []byte(content)))
		if len(got.rows) != 2 || len(got.bad) != 1 || got.bad[0].Got[:8] != "a longer" || len(got.bad[0].Raw) != maxRaw {
			t.Errorf("%s: %d rows, %d bad", name, len(got.rows), len(got.bad))
		}
	}
}

// Exactly 1 MB is read, one byte more is not, whatever ends the line.
func TestLineLimit(t *testing.T) {
	for _, extra := range []int{0, 1} {
		for _, end := range []string{"\n", ""} {
			text := strings.Repeat("x", maxLine+extra) + end
			in, err := openInput(save(t, "x", []byte("a\n"+text)))
			if err != nil {
				t.Fatal(err)
			}
			l := lineReader{in: in.in}
			if line, long, err := l.next(); string(line) != "a" || long || err != nil {
				t.Error(line, long, err)
			}
			line, long, err := l.next()
			if err != nil || len(line) != maxLine || long != (extra > 0) {
				t.Errorf("%d bytes more, end %q: %d bytes, long %v, %v", extra, end, len(line), long, err)
			}
			if _, _, err := l.next(); !errors.Is(err, io.EOF) {
				t.Error(err)
			}
			_ = in.close()
		}
	}
}

// A quoted field that is never closed costs its line, not the file.
func TestUnclosedQuoteOverAMegabyte(t *testing.T) {
	var b strings.Builder
	b.WriteString("time,op,bytes,owner\n1,read,1,\"open\n")
	n := 0
	for b.Len() < 2<<20 {
		b.WriteString("1431857103,read,1,owner\n")
		n++
	}
	got := readAll(t, Options{}, save(t, "x.csv", []byte(b.String())))
	if len(got.rows) != n || len(got.bad) != 1 || got.bad[0].Line != 2 || got.pos[n-1].Line != int64(n+2) {
		t.Errorf("%d rows of %d, bad %v", len(got.rows), n, got.bad)
	}
}

// Records are those of the standard library where it reads them all.
func TestCSVAgreesWithTheStandardLibrary(t *testing.T) {
	cell := rapid.OneOf(rapid.StringMatching(`[a-c "\n,;\t]{0,6}`), rapid.SampledFrom([]string{`"a"`, `""`, `"x""y"`, "\"l\nm\"", `"`, `a"`, ""}))
	rapid.Check(t, func(t *rapid.T) {
		comma := rapid.SampledFrom([]byte(",\t;")).Draw(t, "comma")
		var lines []string
		for range rapid.IntRange(1, 4).Draw(t, "lines") {
			lines = append(lines, strings.Join(rapid.SliceOfN(cell, 1, 3).Draw(t, "cells"), string(comma)))
		}
		text := strings.Join(lines, "\n")
		std := csv.NewReader(strings.NewReader(text))
		std.FieldsPerRecord, std.Comma = -1, rune(comma)
		want, err := std.ReadAll()
		s := &csvSource{lines: lineReader{in: newBuffered(text)}, strings: newInterner(), comma: comma}
		var got [][]string
		var bad *fault
		for {
			e := s.read()
			if errors.Is(e, io.EOF) {
				break
			}
			if errors.As(e, &bad) {
				continue
			}
			var row []string
			for _, f := range s.fields {
				row = append(row, string(f))
			}
			got = append(got, row)
		}
		if (bad != nil) != (err != nil) {
			t.Fatalf("%q: fault %v, the standard library %v", text, bad, err)
		}
		if err == nil && fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
			t.Fatalf("%q:\n got %q\nwant %q", text, got, want)
		}
	})
}

func TestTraceOfText(t *testing.T) {
	var r event.Request
	if ok := setText(&r, colTrace, []byte("0AF7651916CD43DD8448EB211C80319C"), nil); !ok || r.Trace[0] != 0x0a || r.Trace[15] != 0x9c {
		t.Errorf("trace %x, %v", r.Trace, ok)
	}
}
