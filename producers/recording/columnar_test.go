package recording

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"penstock/schemas/event"
)

// foreign makes a record of JSON, as others would write their recordings.
func foreign(t *testing.T, fields []arrow.Field, rows string) arrow.Record {
	t.Helper()
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, arrow.NewSchema(fields, nil), strings.NewReader(rows))
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// saved writes a record as Parquet and as an IPC file and stream.
func saved(t *testing.T, rec arrow.Record) map[string]string {
	t.Helper()
	dir := t.TempDir()
	var pq, file, stream bytes.Buffer
	pw, err := pqarrow.NewFileWriter(rec.Schema(), &pq, parquet.NewWriterProperties(), pqarrow.DefaultWriterProps())
	fw, err2 := ipc.NewFileWriter(&discardSeek{&file}, ipc.WithSchema(rec.Schema()))
	sw := ipc.NewWriter(&stream, ipc.WithSchema(rec.Schema()))
	if err := errors.Join(err, err2, pw.Write(rec), pw.Close(), fw.Write(rec), fw.Close(), sw.Write(rec), sw.Close()); err != nil {
		t.Fatal(err)
	}
	out := make(map[string]string)
	for name, b := range map[string]*bytes.Buffer{"parquet": &pq, "file": &file, "stream": &stream} {
		// Without an extension: the content tells the format.
		out[name] = filepath.Join(dir, name)
		if err := os.WriteFile(out[name], b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// discardSeek is a buffer that says where it is.
type discardSeek struct{ *bytes.Buffer }

func (d *discardSeek) Seek(int64, int) (int64, error) { return int64(d.Len()), nil }

func field(name string, typ arrow.DataType) arrow.Field {
	return arrow.Field{Name: name, Type: typ, Nullable: true}
}

func TestForeignColumns(t *testing.T) {
	str, f64, i64 := arrow.BinaryTypes.String, arrow.PrimitiveTypes.Float64, arrow.PrimitiveTypes.Int64
	dict := func(index arrow.DataType) arrow.DataType {
		return &arrow.DictionaryType{IndexType: index, ValueType: str}
	}
	for name, test := range map[string]struct {
		fields []arrow.Field
		rows   string
		want   string
	}{
		"wide numbers, plain texts": {
			[]arrow.Field{field("time", i64), field("op", str), field("bytes", arrow.PrimitiveTypes.Int32), field("lat", f64), field("lon", f64), field("status", i64), field("owner", str), field("colour", str), field("n", arrow.PrimitiveTypes.Int16)},
			`[{"time":1431857103,"op":"read","bytes":5,"lat":47.5,"lon":8.25,"status":200,"owner":"o","colour":"red","n":12},{"time":1431857103250,"op":"write","bytes":0,"lat":null,"lon":null,"status":null,"owner":null,"n":0}]`,
			"row 1: 2015-05-17T10:05:03Z op=read bytes=5 status=200 n=12 lat=47.5 lon=8.25 owner=o\nrow 2: 2015-05-17T10:05:03.25Z op=write\nnote: columns left out: colour\n2 rows, 0 bad, 0 blank\n",
		},
		"time in milliseconds, bytes as float": {
			[]arrow.Field{field("time", arrow.FixedWidthTypes.Timestamp_ms), field("op", dict(arrow.PrimitiveTypes.Int32)), field("bytes", f64), field("user", i64)},
			`[{"time":"2015-05-17 10:05:03.250","op":"read","bytes":5,"user":7},{"time":"2015-05-17 10:05:03.250","op":"read","bytes":5.5,"user":8},{"time":"2015-05-17 10:05:03.250","op":"write","bytes":6,"user":null}]`,
			"row 1: 2015-05-17T10:05:03.25Z op=read bytes=5 user=7\nrow 3: 2015-05-17T10:05:03.25Z op=write bytes=6\nbad: X line 2: field bytes: got \"5.5\", expected a whole number from 0 to 137438953472\n2 rows, 1 bad, 0 blank\n",
		},
		"time in nanoseconds, dictionaries": {
			[]arrow.Field{field("time", arrow.FixedWidthTypes.Timestamp_ns), field("op", str), field("bytes", i64), field("owner", dict(arrow.PrimitiveTypes.Int32)), field("id", str)},
			`[{"time":"2015-05-17 10:05:03.000001999","op":"read","bytes":1,"owner":"a","id":"x"},{"time":"2015-05-17 10:05:03","op":"read","bytes":2,"owner":"b","id":null},{"time":"2015-05-17 10:05:03","op":"read","bytes":3,"owner":"a","id":"y"}]`,
			"row 1: 2015-05-17T10:05:03.000001Z op=read bytes=1 id=x owner=a\nrow 2: 2015-05-17T10:05:03Z op=read bytes=2 owner=b\nrow 3: 2015-05-17T10:05:03Z op=read bytes=3 id=y owner=a\n3 rows, 0 bad, 0 blank\n",
		},
		"all as text": {
			[]arrow.Field{field("time", str), field("op", str), field("bytes", str), field("lat", str), field("lon", str), field("trace", str), field("status", str)},
			`[{"time":"2015-05-17T10:05:03Z","op":"read","bytes":"5.0","lat":"47.5","lon":"8","trace":"0af7651916cd43dd8448eb211c80319c","status":"-"},{"time":"soon","op":"read","bytes":"1"},{"time":"1431857103","op":"read","bytes":"-"},{"time":"1431857103","op":"read","bytes":"1","trace":"xyz"}]`,
			"row 1: 2015-05-17T10:05:03Z op=read bytes=5 lat=47.5 lon=8 trace=0af7651916cd43dd8448eb211c80319c\nbad: X line 2: field time: got \"soon\", expected RFC 3339 or Unix s, ms, us or ns, between 1900 and 2200\nbad: X line 3: field bytes: got \"-\", expected a whole number from 0 to 137438953472\nbad: X line 4: field trace: got \"xyz\", expected 32 hexadecimal digits\n1 rows, 3 bad, 0 blank\n",
		},
		"nulls and values out of range": {
			[]arrow.Field{field("time", i64), field("op", str), field("bytes", i64), field("status", arrow.PrimitiveTypes.Int32), field("lat", f64), field("lon", f64)},
			`[{"time":null,"op":"read","bytes":1},{"time":1431857103,"op":null,"bytes":1},{"time":1431857103,"op":"read","bytes":null},{"time":1431857103,"op":"peek","bytes":1},{"time":1431857103,"op":"read","bytes":-1},{"time":1431857103,"op":"read","bytes":1,"status":70000},{"time":1431857103,"op":"read","bytes":1,"lat":91,"lon":0},{"time":1431857103,"op":"read","bytes":1,"lat":1},{"time":1431857103,"op":"read","bytes":1}]`,
			"row 9: 2015-05-17T10:05:03Z op=read bytes=1\n" +
				"bad: X line 1: field time: got \"\", expected RFC 3339 or Unix s, ms, us or ns, between 1900 and 2200 (it may not be missing)\n" +
				"bad: X line 2: field op: got \"\", expected read, write or an HTTP method (it may not be missing)\n" +
				"bad: X line 3: field bytes: got \"\", expected a whole number from 0 to 137438953472 (it may not be missing)\n" +
				"bad: X line 4: field op: got \"peek\", expected read, write or an HTTP method\n" +
				"bad: X line 5: field bytes: got \"-1\", expected a whole number from 0 to 137438953472\n" +
				"bad: X line 6: field status: got \"70000\", expected a status from 0 to 65535\n" +
				"bad: X line 7: field lat: got \"91\", expected degrees from -90 to 90\n" +
				"bad: X line 8: field lat: got \"1\", expected both lat and lon, or neither\n1 rows, 8 bad, 0 blank\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			for kind, path := range saved(t, foreign(t, test.fields, test.rows)) {
				got := readAll(t, Options{}, path)
				if !errors.Is(got.err, io.EOF) {
					t.Errorf("%s: %v", kind, got.err)
				}
				text := strings.ReplaceAll(got.String(), kind+" line", "X line")
				if text != test.want {
					t.Errorf("%s:\n%s", kind, text)
				}
			}
		})
	}
}

// A batch that was in use holds nothing of its last record.
func TestBatchesForgetWhatTheyHeld(t *testing.T) {
	i64, str := arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String
	base := []arrow.Field{field("time", i64), field("op", str), field("bytes", i64)}
	full := foreign(t, append(base[:3:3], field("lat", arrow.PrimitiveTypes.Float64), field("lon", str), field("status", i64), field("wait_us", i64), field("owner", str), field("trace", str)),
		`[{"time":1,"op":"write","bytes":1,"lat":1.5,"lon":"2.5","status":200,"wait_us":3,"owner":"o","trace":"0af7651916cd43dd8448eb211c80319c"},
		  {"time":2,"op":"write","bytes":1,"lat":1.5,"lon":"2.5","status":200,"wait_us":3,"owner":"o","trace":"0af7651916cd43dd8448eb211c80319c"}]`)
	empty := foreign(t, append(base[:3:3], field("lat", arrow.PrimitiveTypes.Float64), field("lon", str)),
		`[{"time":1,"op":"read","bytes":0,"lat":null,"lon":null},{"time":2,"op":"read","bytes":0,"lat":null,"lon":"-"},{"time":3,"op":"read","bytes":0,"lat":null,"lon":""}]`)
	var b batch
	for _, rec := range []arrow.Record{full, empty, full, empty, empty, full} {
		c := &columnarSource{records: &oneRecord{rec}, strings: newInterner()}
		if err := c.fill(&b, 1); err != nil {
			t.Fatal(err)
		}
		for i := range b.rows {
			var r event.Request
			b.row(i, &r)
			want := "1970-01-01T00:00:0" + fmt.Sprint(i+1) + "Z op=read"
			if rec == full {
				want = "1970-01-01T00:00:0" + fmt.Sprint(i+1) + "Z op=write bytes=1 status=200 lat=1.5 lon=2.5 wait_us=3 trace=0af7651916cd43dd8448eb211c80319c owner=o"
			}
			if got := describe(&r); got != want || len(b.faults) > 0 {
				t.Errorf("got %s, %v, expected %s", got, b.faults, want)
			}
		}
	}
}

type oneRecord struct{ rec arrow.Record }

func (o *oneRecord) Read() (arrow.Record, error) { return o.rec, nil }

// Index types of dictionaries change on their way; all are read.
func TestDictionaryIndexTypes(t *testing.T) {
	for _, index := range []arrow.DataType{
		arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Int64,
	} {
		typ := &arrow.DictionaryType{IndexType: index, ValueType: arrow.BinaryTypes.String}
		rec := foreign(t, []arrow.Field{field("time", arrow.PrimitiveTypes.Int64), field("op", typ), field("bytes", arrow.PrimitiveTypes.Int64), field("owner", typ)},
			`[{"time":1,"op":"write","bytes":1,"owner":"a"},{"time":2,"op":"read","bytes":1,"owner":null},{"time":3,"op":"read","bytes":1,"owner":"b"}]`)
		for kind, path := range saved(t, rec) {
			got := readAll(t, Options{}, path)
			if len(got.rows) != 3 || got.rows[0].Owner != "a" || got.rows[0].Op != event.Write || got.rows[1].Owner != "" || got.rows[2].Owner != "b" {
				t.Errorf("%s %s: %s %v", index, kind, got, got.err)
			}
		}
	}
}

func TestColumnsThatCannotBeRead(t *testing.T) {
	i64, boolean := arrow.PrimitiveTypes.Int64, arrow.FixedWidthTypes.Boolean
	for name, test := range map[string]struct {
		fields []arrow.Field
		fault  string
	}{
		"no op":          {[]arrow.Field{field("time", i64), field("bytes", i64)}, "no column op"},
		"flags as bytes": {[]arrow.Field{field("time", i64), field("op", arrow.BinaryTypes.String), field("bytes", boolean)}, "column bytes: got bool, expected a whole number"},
		"flags as owner": {[]arrow.Field{field("time", i64), field("op", arrow.BinaryTypes.String), field("bytes", i64), field("owner", boolean)}, "column owner: got bool, expected text"},
	} {
		for kind, path := range saved(t, foreign(t, test.fields, `[{}]`)) {
			if got := readAll(t, Options{}, path); !errors.Is(got.err, ErrNothingParses) || !strings.Contains(got.err.Error(), test.fault) {
				t.Errorf("%s, %s: got %v", name, kind, got.err)
			}
		}
	}
}

func TestPackedColumnarFiles(t *testing.T) {
	rows := manyRows(3000)
	for _, name := range []string{"r.parquet", "r.arrow"} {
		path := filepath.Join(t.TempDir(), name)
		write(t, path, rows)
		plain, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for ext, packed := range map[string][]byte{".gz": gzipped(t, plain), ".zst": zstded(t, plain)} {
			same(t, readAll(t, Options{}, save(t, name+ext, packed)).rows, rows)
		}
	}
}

func gzipped(t *testing.T, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func zstded(t *testing.T, b []byte) []byte {
	t.Helper()
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	return z.EncodeAll(b, nil)
}

// Damage anywhere gives an error or rows, never a panic, and leaves nothing
// running.
func TestDamagedColumnarFiles(t *testing.T) {
	for _, name := range []string{"r.parquet", "r.arrow"} {
		path := filepath.Join(t.TempDir(), name)
		write(t, path, manyRows(200))
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{4, 8, len(whole) / 4, len(whole) / 2, len(whole) - 5} {
			got := readAll(t, Options{}, save(t, name, whole[:n]))
			if errors.Is(got.err, io.EOF) && (name == "r.parquet" || n < len(whole)-5) || len(got.rows) > 200 {
				t.Errorf("%s cut at %d of %d: %v, %d rows", name, n, len(whole), got.err, len(got.rows))
			}
		}
		for at := 5; at < len(whole); at += len(whole)/100 + 1 {
			b := bytes.Clone(whole)
			b[at] ^= 0x5a
			got := readAll(t, Options{}, save(t, name, b))
			if !errors.Is(got.err, io.EOF) && !errors.Is(got.err, ErrDamaged) && !errors.Is(got.err, ErrNothingParses) {
				t.Errorf("%s byte %d: %v", name, at, got.err)
			}
		}
	}
}

func TestCloseInTheMiddle(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.parquet")
	write(t, path, manyRows(2*batchRows+100))
	for _, n := range []int{0, 1, batchRows, batchRows + 1, 2 * batchRows} {
		r, err := Open([]string{path}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		var q event.Request
		for range n {
			if err := r.Next(&q); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestColumnarRowsAllocateNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.parquet")
	write(t, path, manyRows(batchRows))
	r, err := Open([]string{path}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var q event.Request
	if err := r.Next(&q); err != nil {
		t.Fatal(err)
	}
	// The batch is decoded; the goroutine waits.
	if n := testing.AllocsPerRun(1000, func() {
		if err := r.Next(&q); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations a row", n)
	}
}

func BenchmarkRead(b *testing.B) {
	const n = 300_000
	dir := b.TempDir()
	names := []string{"r.parquet", "r.arrow", "r.csv", "r.csv.zst", "r.jsonl"}
	// The rows go before the clock runs: they are nothing that a reader keeps.
	func() {
		rows := manyRows(n)
		for _, name := range names {
			write(b, filepath.Join(dir, name), rows)
		}
	}()
	runtime.GC()
	for _, name := range names {
		b.Run(name, func(b *testing.B) { benchmarkFile(b, filepath.Join(dir, name), n) })
	}
	b.Run("access.log", func(b *testing.B) {
		var log bytes.Buffer
		for i := range 100_000 {
			fmt.Fprintf(&log, `10.0.%d.%d - - [17/May/2015:10:05:%02d +0000] "GET /presentations-%d/logstash/images/kibana-search.png HTTP/1.1" 200 %d "http://semicomplete.com/presentations/" "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_9_1) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/32.0"`+"\n",
				i/250%20, i%250, i%60, i%40, i)
		}
		benchmarkFile(b, save(b, "access.log", log.Bytes()), 100_000)
	})
}

func benchmarkFile(b *testing.B, path string, rows int) {
	b.ReportAllocs()
	var q event.Request
	total := 0
	for b.Loop() {
		r, err := Open([]string{path}, Options{AccessLog: testLogs})
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		for err = r.Next(&q); err == nil; err = r.Next(&q) {
			n++
		}
		if !errors.Is(err, io.EOF) || n != rows {
			b.Fatal(n, err)
		}
		total += n
		if err := r.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(math.Round(float64(total)/b.Elapsed().Seconds()), "rows/s")
}
