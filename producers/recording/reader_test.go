package recording

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"penstock/producers/accesslog"
	"penstock/schemas/event"
)

// csvOf makes a recording of rows at times, whose owner is file and line.
func csvOf(name string, times ...int64) string {
	var b strings.Builder
	b.WriteString("time,op,bytes,owner\n")
	for i, at := range times {
		fmt.Fprintf(&b, "%d,read,1,%s%d\n", at, name, i+2)
	}
	return b.String()
}

func owners(r result) string {
	var out []string
	for i := range r.rows {
		out = append(out, r.rows[i].Owner)
	}
	return strings.Join(out, ",")
}

func TestMergeByTimeThenFileThenLine(t *testing.T) {
	files := func(names ...string) (paths []string) {
		content := map[string]string{
			"a": csvOf("a", 10, 20, 20, 40), "b": csvOf("b", 5, 20, 30), "c": csvOf("c", 20, 20, 50),
			// Out of order inside: stays so, and what it holds back comes late.
			"d":     csvOf("d", 30, 10, 60),
			"empty": "", "header": csvOf("h"),
			"e": "time,op,bytes,owner\nsoon,read,1,e2\n15,read,1,e3\nnever,read,1,e4\n25,read,1,e5\n",
		}
		for _, n := range names {
			paths = append(paths, save(t, n+".csv", []byte(content[n])))
		}
		return paths
	}
	for _, test := range []struct{ files, want string }{
		{"a", "a2,a3,a4,a5"},
		{"a b c", "b2,a2,a3,a4,b3,c2,c3,b4,a5,c4"},
		{"c b a", "b2,a2,c2,c3,b3,a3,a4,b4,a5,c4"},
		{"d a", "a2,a3,a4,d2,d3,a5,d4"},
		{"a empty header a", "a2,a2,a3,a4,a3,a4,a5,a5"},
		{"e a", "a2,e3,a3,a4,e5,a5"},
	} {
		got := readAll(t, Options{}, files(strings.Fields(test.files)...)...)
		if owners(got) != test.want || !errors.Is(got.err, io.EOF) {
			t.Errorf("%s: got %s, %v, expected %s", test.files, owners(got), got.err, test.want)
		}
		for i, p := range got.pos {
			if want := fmt.Sprint(strings.TrimSuffix(filepath.Base(p.File), ".csv"), p.Line); want != got.rows[i].Owner ||
				strings.Fields(test.files)[p.Index]+".csv" != filepath.Base(p.File) {
				t.Errorf("%s: position %+v of %s", test.files, p, got.rows[i].Owner)
			}
		}
	}
}

func TestMergeOfOrderedFilesIsOrdered(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		type row struct {
			time       int64
			file, line int
		}
		var want []row
		var paths []string
		for f := range rapid.IntRange(1, 5).Draw(rt, "files") {
			times := rapid.SliceOfN(rapid.Int64Range(0, 20), 0, 10).Draw(rt, "times")
			slices.Sort(times)
			for i, at := range times {
				want = append(want, row{at, f, i + 2})
			}
			paths = append(paths, filepath.Join(dir, fmt.Sprint(f)))
			if err := os.WriteFile(paths[f], []byte(csvOf(fmt.Sprint(f, "-"), times...)), 0o644); err != nil {
				rt.Fatal(err)
			}
		}
		slices.SortStableFunc(want, func(a, b row) int { return int(a.time - b.time) })
		got := readAll(t, Options{}, paths...)
		if len(got.rows) != len(want) {
			rt.Fatalf("%d rows, expected %d", len(got.rows), len(want))
		}
		for i, w := range want {
			if got.rows[i].Time != w.time*1_000_000 || got.pos[i].Index != w.file || got.pos[i].Line != int64(w.line) {
				rt.Fatalf("row %d: %+v at %+v, expected %+v", i, got.rows[i].Time, got.pos[i], w)
			}
		}
	})
}

func TestTruncatedFiles(t *testing.T) {
	var log, lines strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&log, logLine+"\n", i%60, itoa(i*i))
		fmt.Fprintf(&lines, jsonLine+"\n", i*i)
	}
	for name, plain := range map[string]string{"x.log": log.String(), "x.jsonl": lines.String()} {
		for ext, packed := range map[string][]byte{".gz": gzipped(t, []byte(plain)), ".zst": zstded(t, []byte(plain))} {
			whole := readAll(t, Options{}, save(t, name+ext, packed))
			if len(whole.rows) != 2000 || !errors.Is(whole.err, io.EOF) {
				t.Fatalf("%s%s: %d rows, %v", name, ext, len(whole.rows), whole.err)
			}
			path := save(t, name+ext, packed[:len(packed)-10])
			got := readAll(t, Options{}, path)
			want := fmt.Sprintf("%s breaks off after line %d: ", path, len(got.rows))
			if !errors.Is(got.err, ErrDamaged) || !strings.HasPrefix(got.err.Error(), want) || len(got.bad) > 0 {
				t.Errorf("%s%s cut: %d rows, %d bad, %v", name, ext, len(got.rows), len(got.bad), got.err)
			}
			same(t, got.rows, whole.rows[:len(got.rows)])
			// The rows of other files before it stand, too, if it had any.
			had := len(got.rows)
			got = readAll(t, Options{}, save(t, "first.csv", []byte(csvOf("f", 1, 2))), path)
			if !errors.Is(got.err, ErrDamaged) || had > 0 && (len(got.rows) < 2 || got.rows[1].Owner != "f3") {
				t.Errorf("%s%s cut, behind another: %v", name, ext, got.err)
			}
			// Cut within the header of the compression.
			if got := readAll(t, Options{}, save(t, name+ext, packed[:5])); !errors.Is(got.err, ErrDamaged) {
				t.Errorf("%s%s cut at 5: %v", name, ext, got.err)
			}
		}
	}
	// Several members are one file.
	two := append(gzipped(t, []byte(fmt.Sprintf(jsonLine, 1)+"\n")), gzipped(t, []byte(fmt.Sprintf(jsonLine, 2)+"\n"))...)
	if got := readAll(t, Options{}, save(t, "x.gz", two)); len(got.rows) != 2 || !errors.Is(got.err, io.EOF) {
		t.Errorf("two members: %d rows, %v", len(got.rows), got.err)
	}
	if got := readAll(t, Options{}, save(t, "x.gz", append(two, "trailing"...))); len(got.rows) != 2 || !errors.Is(got.err, ErrDamaged) {
		t.Errorf("rubbish behind: %d rows, %v", len(got.rows), got.err)
	}
}

func TestFilesThatCannotBeOpened(t *testing.T) {
	good := save(t, "good.csv", []byte(csvOf("g", 1)))
	gone := filepath.Join(t.TempDir(), "gone")
	for name, test := range map[string]struct {
		files []string
		o     Options
		want  error
	}{
		"none":            {nil, Options{}, ErrOption},
		"no such file":    {[]string{good, gone}, Options{}, os.ErrNotExist},
		"a folder":        {[]string{t.TempDir()}, Options{}, ErrOption},
		"no such format":  {[]string{good}, Options{Format: "xml"}, ErrOption},
		"log without key": {[]string{save(t, "x.log", nil)}, Options{}, ErrOption},
		"bad owner depth": {[]string{save(t, "x.log", nil)}, Options{AccessLog: accesslog.Options{Key: []byte("k"), OwnerDepth: -1}}, ErrOption},
	} {
		if r, err := Open(test.files, test.o); !errors.Is(err, test.want) || r != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A pipe would be empty when it is read again; to open one that nobody writes to
// would wait for ever.
func TestOnlyRegularFilesAreRead(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe.csv")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	linked := filepath.Join(dir, "linked")
	if err := os.Symlink(pipe, linked); err != nil {
		t.Fatal(err)
	}
	const what = " is not a regular file: a recording is read more than once, write it to a file first"
	for name, want := range map[string]string{
		pipe: pipe + " (a pipe)", linked: linked + " (a pipe)", dir: dir + " (a folder)",
		os.DevNull: os.DevNull + " (a device)", "-": "- (standard input)",
	} {
		_, err := Open([]string{name}, Options{AccessLog: testLogs})
		_, err2 := Digest(context.Background(), []string{name})
		_, err3 := EachLine(context.Background(), name, nil, func([]byte) *LineFault { return nil })
		for _, err := range []error{err, err2, err3} {
			if !errors.Is(err, ErrOption) || !strings.Contains(fmt.Sprint(err), ": "+want+what) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	// A link to a file is a file.
	link := filepath.Join(dir, "link")
	if err := os.Symlink(save(t, "x.csv", []byte(csvOf("x", 1))), link); err != nil {
		t.Fatal(err)
	}
	if got := readAll(t, Options{}, link); len(got.rows) != 1 || !errors.Is(got.err, io.EOF) {
		t.Errorf("a link: %v", got.err)
	}
}

func TestDigest(t *testing.T) {
	digest := func(contents ...string) string {
		var files []string
		for _, c := range contents {
			files = append(files, save(t, "x", []byte(c)))
		}
		d, err := Digest(context.Background(), files)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	a := digest("one", "two")
	if a != digest("one", "two") || len(a) != len("sha256:")+64 {
		t.Error("the digest is not of the content")
	}
	for name, b := range map[string]string{"order": digest("two", "one"), "borders": digest("onet", "wo"), "one file": digest("onetwo"), "an empty file": digest("one", "two", "")} {
		if a == b {
			t.Errorf("%s does not count", name)
		}
	}
	if _, err := Digest(context.Background(), []string{filepath.Join(t.TempDir(), "gone")}); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Digest(ctx, []string{save(t, "x", []byte("x"))}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestEachLine(t *testing.T) {
	content := "\ufeffa\r\n\nb\n" + strings.Repeat("x", 2<<20) + "\nbad\nc"
	var got []string
	var bad []BadLine
	stats, err := EachLine(context.Background(), save(t, "x.gz", gzipped(t, []byte(content))), func(b BadLine) { bad = append(bad, b) }, func(line []byte) *LineFault {
		if string(line) == "bad" {
			return &LineFault{"word", "bad", "a good one"}
		}
		got = append(got, string(line))
		return nil
	})
	if err != nil || strings.Join(got, " ") != "a b c" || stats != (Stats{Rows: 3, Bad: 2, Blank: 1}) {
		t.Errorf("%q, %+v, %v", got, stats, err)
	}
	if len(bad) != 2 || bad[0].Line != 4 || bad[1].Line != 5 || bad[1].Field != "word" {
		t.Errorf("%v", bad)
	}
	all := func([]byte) *LineFault { return &LineFault{"word", "x", "y"} }
	if _, err := EachLine(context.Background(), save(t, "x", []byte("1\n2\n")), nil, all); !errors.Is(err, ErrNothingParses) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := EachLine(ctx, save(t, "x", []byte("1\n2\n")), nil, all); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// Strings of a row outlive what they were read from.
func TestStringsStayValid(t *testing.T) {
	rows := manyRows(batchRows + 100)
	for _, name := range []string{"r.parquet", "r.csv"} {
		path := filepath.Join(t.TempDir(), name)
		write(t, path, rows)
		same(t, readAll(t, Options{}, path).rows, rows)
	}
}

// fuzz reads whatever bytes as one format, to the end or an error.
func fuzz(t *testing.T, format Format, in *input) {
	t.Helper()
	bad := int64(0)
	o := Options{Format: format, AccessLog: testLogs, Bad: func(b BadLine) {
		bad++
		if b.Line < 1 || b.Field == "" || b.Expected == "" || len(b.Got) > maxGot || b.Column < 0 {
			t.Errorf("a bad line without a place: %+v", b)
		}
	}}
	f := &file{tally: tally{name: "x", tell: o.Bad}, in: in, opts: &o}
	var err error
	if f.src, err = f.newSource(newInterner()); err == nil {
		for err == nil {
			if err = f.next(); err == nil && f.row.Check() != nil {
				t.Errorf("an invalid row: %+v", f.row)
			}
		}
		if bad != f.bad {
			t.Errorf("%d bad lines told of, %d counted", bad, f.bad)
		}
		if err := f.src.close(); err != nil {
			t.Error(err)
		}
	}
	if !errors.Is(err, io.EOF) && !errors.Is(err, ErrNothingParses) && !errors.Is(err, ErrDamaged) {
		t.Errorf("unexpected error %v", err)
	}
}

// inMemory is an input without a file; Parquet needs one.
func inMemory(data []byte) *input {
	return &input{name: "x", in: bufio.NewReader(bytes.NewReader(data)), finish: func() {}}
}

func FuzzText(f *testing.F) {
	for _, name := range []string{"rows.jsonl", "rows.csv"} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(fmt.Sprintf(logLine, 1, "a") + "\r\n"))
	f.Add([]byte("time,op,bytes\n\"1\",\"re\nad\",\"\"\"\n"))
	f.Add([]byte(`{"time":1,"op":"read","bytes":1}{"a":{"b":["}"]},"time`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, format := range []Format{CSV, JSONLines, AccessLog} {
			fuzz(t, format, inMemory(data))
		}
	})
}

func FuzzArrow(f *testing.F) {
	path := filepath.Join(f.TempDir(), "r.arrow")
	write(f, path, manyRows(20))
	data, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) { fuzz(t, Arrow, inMemory(data)) })
}

func FuzzParquet(f *testing.F) {
	path := filepath.Join(f.TempDir(), "r.parquet")
	write(f, path, manyRows(20))
	data, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		in, err := openInput(save(t, "x", data))
		if err != nil {
			return // packed, and damaged so
		}
		fuzz(t, Parquet, in)
		_ = in.close()
	})
}

func TestTextRowsAllocateNothing(t *testing.T) {
	var log, lines, table strings.Builder
	table.WriteString(csvOf("x"))
	for i := range 3000 {
		fmt.Fprintf(&log, logLine+"\n", i%60, "a")
		fmt.Fprintf(&lines, jsonLine+"\n", i)
		fmt.Fprintf(&table, "%d,write,%d,\"o\"\n", i, i)
	}
	for name, content := range map[string]string{"x.log": log.String(), "x.jsonl": lines.String(), "x.csv": table.String()} {
		r, err := Open([]string{save(t, name, []byte(content))}, Options{AccessLog: testLogs})
		if err != nil {
			t.Fatal(err)
		}
		var q event.Request
		next := func() {
			if err := r.Next(&q); err != nil {
				t.Fatal(err)
			}
		}
		next()
		if n := testing.AllocsPerRun(1000, next); n > 0 {
			t.Errorf("%s: %v allocations a row", name, n)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}
