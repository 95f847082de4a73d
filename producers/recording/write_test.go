package recording

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"penstock/schemas/event"
)

func newBuffered(s string) *bufio.Reader { return bufio.NewReaderSize(strings.NewReader(s), 16) }

func write(t testing.TB, path string, rows []event.Request) {
	t.Helper()
	w, err := Create(path, WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		if err := w.Write(&rows[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// same compares rows, of which an absent position is equal to itself.
func same(t fataler, got, want []event.Request) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d rows, expected %d", len(got), len(want))
	}
	for i := range got {
		x, y := got[i], want[i]
		if !x.HasPlace() && !y.HasPlace() {
			x.Lat, x.Lon, y.Lat, y.Lon = 0, 0, 0, 0
		}
		if x != y {
			t.Fatalf("row %d:\n got %+v\nwant %+v", i, got[i], want[i])
		}
	}
}

// anyRow draws a valid row whose columns are each absent or not.
func anyRow() *rapid.Generator[event.Request] {
	text := rapid.OneOf(rapid.Just(""), rapid.SampledFrom([]string{"a", "us-east", "a,b", `say "x"`, "one\ntwo", "", "e\u00e9\U0001f600", " x ", "b\tc\x01", "{}", "0"}),
		rapid.StringMatching(`[a-zA-Z0-9@:%/ .-]{2,12}`)).Filter(func(s string) bool { return s != "null" && !strings.HasSuffix(s, "\r") })
	number := rapid.OneOf(rapid.Just(int64(event.NullInt)), rapid.Int64Range(-5, 5), rapid.Int64Range(-event.MaxDelay, event.MaxDelay), rapid.SampledFrom([]int64{-event.MaxDelay, event.MaxDelay}))
	return rapid.Custom(func(t *rapid.T) event.Request {
		r := event.NewRequest(rapid.Int64Range(-2_000_000_000_000_000, 7_000_000_000_000_000).Draw(t, "time"))
		r.Mark = event.Timing(rapid.IntRange(0, 2).Draw(t, "mark"))
		r.Op = event.Op(rapid.IntRange(0, 1).Draw(t, "op"))
		r.N, r.K = uint8(rapid.IntRange(0, 255).Draw(t, "n")), uint8(rapid.IntRange(0, 255).Draw(t, "k"))
		r.Status = int32(rapid.SampledFrom([]int{event.NullStatus, 0, 200, 65535}).Draw(t, "status"))
		if rapid.Bool().Draw(t, "placed") {
			r.Lat = rapid.Float32Range(-90, 90).Draw(t, "lat")
			r.Lon = rapid.Float32Range(-180, 180).Draw(t, "lon")
		}
		r.Bytes = rapid.Int64Range(0, event.MaxRequestBytes).Draw(t, "bytes")
		r.Wait, r.Service = number.Draw(t, "wait"), number.Draw(t, "service")
		r.Network, r.Overdue = number.Draw(t, "network"), number.Draw(t, "overdue")
		if rapid.Bool().Draw(t, "traced") {
			copy(r.Trace[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "trace"))
		}
		for c := firstText; c < numColumns; c++ {
			*textOf(&r, c) = text.Draw(t, c.String())
		}
		return r
	})
}

func TestRoundTripOfText(t *testing.T) {
	for _, format := range []Format{CSV, JSONLines} {
		t.Run(string(format), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				rows := rapid.SliceOfN(anyRow(), 1, 8).Draw(t, "rows")
				var text bytes.Buffer
				out := bufio.NewWriter(&text)
				var enc encoder = &jsonEncoder{out: out}
				if format == CSV {
					enc = newCSVEncoder(out)
				}
				for i := range rows {
					if err := enc.write(&rows[i]); err != nil {
						t.Fatal(err)
					}
				}
				if err := enc.finish(); err != nil {
					t.Fatal(err)
				}
				f := &file{in: &input{in: bufio.NewReader(&text)}, opts: &Options{Format: format}}
				src, err := f.newSource(newInterner())
				if err != nil {
					t.Fatal(err)
				}
				got := make([]event.Request, len(rows))
				for i := range got {
					if err := src.next(&got[i]); err != nil {
						t.Fatal(err)
					}
				}
				same(t, got, rows)
			})
		})
	}
}

func TestRoundTripOfFiles(t *testing.T) {
	var rows []event.Request
	for seed := range 300 {
		rows = append(rows, anyRow().Example(seed))
	}
	for _, name := range []string{"r.parquet", "r.arrow", "r.csv", "r.jsonl", "r.csv.gz", "r.jsonl.zst", "r.ndjson"} {
		for _, n := range []int{0, 1, 2, 300} {
			path := filepath.Join(t.TempDir(), name)
			write(t, path, rows[:n])
			got := readAll(t, Options{}, path)
			empty := len(got.notes) == 1 && got.notes[0] == "nothing is in it"
			if len(got.bad) > 0 || empty != (n == 0) || !empty && len(got.notes) > 0 || !errors.Is(got.err, io.EOF) {
				t.Fatalf("%s: %v, %v", name, got, got.err)
			}
			// Rows in the order of the file, which is not that of time.
			same(t, got.rows, rows[:n])
		}
	}
}

// manyRows makes rows that fill several groups, with all columns in use.
func manyRows(n int) []event.Request {
	rows := make([]event.Request, n)
	sites := []string{"us-east", "us-central", "us-west"}
	for i := range rows {
		r := event.NewRequest(1_431_943_200_000_000 + int64(i)*1000)
		r.User, r.Owner = "user-"+itoa(i*7919%2500), "owner-"+itoa(i*104729%2500)
		r.Bytes, r.Status = int64(i%5000), 200
		r.Lat, r.Lon = float32(i%90), float32(i%180)
		r.FromSite, r.ToSite, r.FromComponent, r.ToComponent = sites[i%3], sites[i/7%3], "web", "search"
		r.ToServer, r.Class = "server-"+itoa(i%10), "dynamic"
		r.Wait, r.Service, r.Network = int64(i%100), int64(i%1000), int64(i%3000)
		r.Trace[3], r.Trace[4], r.Trace[5] = byte(i), byte(i>>8), byte(i>>16)
		if i%5 == 0 {
			r.Class, r.Overdue, r.Lat, r.Lon = "", 17, float32(math.NaN()), float32(math.NaN())
		}
		if i%10 == 9 {
			r.Op, r.ID = event.Write, "id-"+itoa(i)
		}
		rows[i] = r
	}
	return rows
}

func itoa(i int) string {
	return string([]byte{byte('a' + i/17576%26), byte('a' + i/676%26), byte('a' + i/26%26), byte('a' + i%26)})
}

func TestRoundTripOverGroups(t *testing.T) {
	rows := manyRows(groupRows + 5000)
	for _, name := range []string{"r.parquet", "r.arrow"} {
		path := filepath.Join(t.TempDir(), name)
		write(t, path, rows)
		got := readAll(t, Options{}, path)
		same(t, got.rows, rows)
		if last := got.pos[len(rows)-1]; last.Line != int64(len(rows)) || last.File != path {
			t.Errorf("position of the last row: %+v", last)
		}
	}
}

func TestEqualRowsGiveEqualBytes(t *testing.T) {
	rows := manyRows(3000)
	for _, name := range []string{"r.parquet", "r.arrow", "r.csv", "r.jsonl", "r.csv.gz", "r.csv.zst"} {
		var first []byte
		for range 2 {
			path := filepath.Join(t.TempDir(), name)
			write(t, path, rows)
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = data
			} else if !bytes.Equal(first, data) {
				t.Errorf("%s: %d and %d bytes that differ", name, len(first), len(data))
			}
		}
	}
}

func TestNothingStandsUnderTheNameBeforeClose(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "r.csv")
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	rows := manyRows(3)
	for _, commit := range []bool{false, true} {
		w, err := Create(path, WriterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range rows {
			if err := w.Write(&rows[i]); err != nil {
				t.Fatal(err)
			}
		}
		if data, _ := os.ReadFile(path); string(data) != "old" {
			t.Errorf("before Close: %q", data)
		}
		if !commit {
			if err := w.Abort(); err != nil {
				t.Error(err)
			}
			if err := w.Write(&rows[0]); !errors.Is(err, ErrClosed) {
				t.Errorf("after Abort: %v", err)
			}
		}
		for range 2 {
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		}
		if entries, _ := os.ReadDir(dir); len(entries) != 1 {
			t.Errorf("left behind: %v", entries)
		}
	}
	same(t, readAll(t, Options{}, path).rows, rows)
}

func TestRowsThatCannotBeWritten(t *testing.T) {
	long := event.NewRequest(1)
	long.Owner = strings.Repeat("o", 5000)
	dash := event.NewRequest(1)
	dash.User = "-"
	ends := event.NewRequest(1)
	ends.Class = "a\r\nb"
	good := event.NewRequest(1)
	for name, faults := range map[string][]struct {
		row  event.Request
		want error
	}{
		"r.parquet": {{long, event.ErrInvalid}, {dash, nil}, {ends, nil}},
		"r.csv":     {{long, event.ErrInvalid}, {dash, ErrUnwritable}, {ends, ErrUnwritable}},
		"r.jsonl":   {{long, event.ErrInvalid}, {dash, ErrUnwritable}, {ends, nil}},
	} {
		path := filepath.Join(t.TempDir(), name)
		w, err := Create(path, WriterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		kept := 0
		for _, f := range faults {
			if err := w.Write(&f.row); !errors.Is(err, f.want) {
				t.Errorf("%s: got %v, expected %v", name, err, f.want)
			} else if f.want == nil {
				kept++
			}
			if err := w.Write(&good); err != nil {
				t.Error(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		if got := readAll(t, Options{}, path); len(got.rows) != kept+len(faults) || w.Rows() != int64(len(got.rows)) {
			t.Errorf("%s: %d rows, the writer says %d", name, len(got.rows), w.Rows())
		}
	}
}

func TestWriterOptionsThatCannotBeUsed(t *testing.T) {
	dir := t.TempDir()
	for name, o := range map[string]WriterOptions{
		"r.log": {Format: AccessLog}, "r.parquet.gz": {}, "r.arrow.zst": {}, "r": {Format: "xml"}, "r.xlsx": {}, "plain": {}, "r.gz": {},
	} {
		if _, err := Create(filepath.Join(dir, name), o); !errors.Is(err, ErrOption) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Create(filepath.Join(dir, "gone", "r.csv"), WriterOptions{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) > 0 {
		t.Errorf("left behind: %v", entries)
	}
}
