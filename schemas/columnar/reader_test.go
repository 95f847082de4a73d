package columnar_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"penstock/schemas/columnar"
)

// sample returns three rows in columns of every type, two of them absent.
func sample() []columnar.Column {
	var text, plain columnar.TextMemory
	var v1, v2, v3 []byte
	counts := columnar.Lists("counts", columnar.ListInt64, []int32{0, 2, 2, 3})
	child := columnar.Fixed("item", columnar.Int64, []int64{5, 6, 7})
	counts.Child = &child
	bins := columnar.Lists("bins", columnar.ListUint16, []int32{0, 0, 0, 1})
	binsChild := columnar.Fixed("item", columnar.Uint16, []uint16{9})
	bins.Child = &binsChild
	return []columnar.Column{
		columnar.Fixed("time", columnar.Time, []int64{1, 2, 3}),
		columnar.Nullable("n", columnar.Int64, []int64{-1, 8, -1}, -1, &v1),
		columnar.Nullable("trace", columnar.Binary16, [][16]byte{{1}, {}, {3}}, [16]byte{}, &v2),
		columnar.NullableFloats("lat", []float32{1.5, 2.5, 3.5}, &v3),
		columnar.Dictionary("owner", []int32{1, -1, 0}, []string{"a", "é"}, &text),
		columnar.Plain("id", []int32{0, -1, 0}, []string{"x"}, &plain),
		columnar.Fixed("mark", columnar.Uint8, []uint8{0, 1, 2}),
		counts, bins,
	}
}

func write(t testing.TB, columns []columnar.Column, rows int) []byte {
	t.Helper()
	var w columnar.Writer
	b, err := w.Write(nil, columns, rows, map[string]string{"rollup": "delay"})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func checkSample(t *testing.T, b *columnar.Batch) {
	t.Helper()
	if b.Rows != 3 || b.Metadata["rollup"] != "delay" {
		t.Errorf("%d rows, metadata %v", b.Rows, b.Metadata)
	}
	check := func(name string, got, expected any) {
		t.Helper()
		if !reflect.DeepEqual(got, expected) {
			t.Errorf("%s: got %v, expected %v", name, got, expected)
		}
	}
	check("time", columnar.Read([]int64(nil), b.Column("time"), 0), []int64{1, 2, 3})
	check("n", columnar.Read([]int64(nil), b.Column("n"), -1), []int64{-1, 8, -1})
	check("trace", columnar.Read([][16]byte(nil), b.Column("trace"), [16]byte{}), [][16]byte{{1}, {}, {3}})
	check("lat", columnar.Read([]float32(nil), b.Column("lat"), 0), []float32{1.5, 2.5, 3.5})
	check("mark", columnar.Read([]uint8(nil), b.Column("mark"), 0), []uint8{0, 1, 2})
	values, err := columnar.ReadTexts(nil, b.Column("owner").Dict, 10)
	check("owner", values, []string{"a", "é"})
	codes, err2 := columnar.ReadCodes(nil, b.Column("owner"), 2)
	check("owner", codes, []int32{1, -1, 0})
	ids, err3 := columnar.ReadTexts(nil, b.Column("id"), 10)
	check("id", ids, []string{"x", "", "x"})
	if err := errors.Join(err, err2, err3); err != nil {
		t.Error(err)
	}
	counts := b.Column("counts")
	check("counts", columnar.Read([]int64(nil), counts.Child, 0), []int64{5, 6, 7})
	check("counts", []int{counts.Offset(0), counts.Offset(1), counts.Offset(2), counts.Offset(3)}, []int{0, 2, 2, 3})
	if b.Column("nothing") != nil {
		t.Error("a column that isn't there")
	}
}

func TestAStreamComesBack(t *testing.T) {
	var r columnar.Reader
	body := write(t, sample(), 3)
	for i, expected := range []bool{true, false} {
		b, changed, err := r.Read(body, 3)
		if err != nil {
			t.Fatal(err)
		}
		if changed != expected {
			t.Errorf("reading %d: schema changed: %v", i, changed)
		}
		checkSample(t, b)
	}
	if _, changed, err := r.Read(write(t, sample()[:1], 3), 3); err != nil || !changed {
		t.Errorf("another schema: changed %v, %v", changed, err)
	}
}

// Arrow's own writer and reader must agree with ours, both ways.
func TestArrowsOwnReaderAndWriterAgree(t *testing.T) {
	columns := sample()
	rd, err := ipc.NewReader(bytes.NewReader(write(t, columns, 3)))
	if err != nil {
		t.Fatal(err)
	}
	defer rd.Release()
	if !rd.Next() {
		t.Fatal(rd.Err())
	}
	rec := rd.Record()
	if v, ok := rec.Schema().Metadata().GetValue("rollup"); !ok || v != "delay" {
		t.Errorf("metadata %v", rec.Schema().Metadata())
	}
	batch := columnar.Batch{Rows: 3, Metadata: map[string]string{"rollup": "delay"}}
	for i, f := range rec.Schema().Fields() {
		if !f.Equal(arrow.Field{Name: columns[i].Name, Type: columnar.DataType(columns[i].Type), Nullable: columns[i].Nullable, Metadata: f.Metadata}) {
			t.Errorf("field %v, expected %+v", f, columns[i].Field)
		}
		c, err := columnar.FromArray(f, rec.Column(i))
		if err != nil {
			t.Fatal(err)
		}
		batch.Columns = append(batch.Columns, c)
	}
	checkSample(t, &batch)

	var buf bytes.Buffer
	w := ipc.NewWriter(&buf, ipc.WithSchema(rec.Schema()))
	if err := errors.Join(w.Write(rec), w.Close()); err != nil {
		t.Fatal(err)
	}
	var r columnar.Reader
	b, _, err := r.Read(buf.Bytes(), 3)
	if err != nil {
		t.Fatal(err)
	}
	checkSample(t, b)
}

// A later version may add columns of any of these types; they are stepped over.
func TestColumnsOfOtherTypesAreSteppedOver(t *testing.T) {
	fields := []arrow.Field{
		{Name: "null", Type: arrow.Null, Nullable: true},
		{Name: "bool", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
		{Name: "f64", Type: arrow.PrimitiveTypes.Float64},
		{Name: "binary", Type: arrow.BinaryTypes.Binary},
		{Name: "large", Type: arrow.BinaryTypes.LargeString},
		{Name: "struct", Type: arrow.StructOf(
			arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int64},
			arrow.Field{Name: "b", Type: &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}},
		)},
		{Name: "lists", Type: arrow.ListOf(arrow.ListOf(arrow.PrimitiveTypes.Int8))},
		{Name: "fixed", Type: arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Int32)},
		{Name: "map", Type: arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int32)},
		{Name: "date", Type: arrow.FixedWidthTypes.Date32},
		{Name: "numbers", Type: &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.PrimitiveTypes.Int64}},
		{Name: "time", Type: columnar.DataType(columnar.Time)},
	}
	schema := arrow.NewSchema(fields, nil)
	rb := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer rb.Release()
	// Empty values of all types, but for the column that is read.
	for range 4 {
		for i := range fields[:len(fields)-1] {
			rb.Field(i).AppendEmptyValue()
		}
		rb.Field(len(fields) - 1).(*array.TimestampBuilder).Append(7)
	}
	rec := rb.NewRecord()
	defer rec.Release()
	var buf bytes.Buffer
	w := ipc.NewWriter(&buf, ipc.WithSchema(schema))
	if err := errors.Join(w.Write(rec), w.Close()); err != nil {
		t.Fatal(err)
	}
	var r columnar.Reader
	b, _, err := r.Read(buf.Bytes(), 10)
	if err != nil {
		t.Fatal(err)
	}
	if got := columnar.Read([]int64(nil), b.Column("time"), 0); !slices.Equal(got, []int64{7, 7, 7, 7}) {
		t.Errorf("got %v", got)
	}
	for _, c := range []struct{ name, typ string }{
		{"bool", "bool"},
		{"f64", "float64"},
		{"large", "large_utf8"},
		{"struct", "struct"},
		{"lists", "list<list<int8>>"},
		{"numbers", "dictionary<int32, int64>"},
	} {
		if got := b.Column(c.name).Type; got != c.typ {
			t.Errorf("%s: got %s, expected %s", c.name, got, c.typ)
		}
	}
}

func TestSlicesOfArraysAreRead(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var valid []byte
	var ints []int64
	for range 100 {
		ints = append(ints, int64(r.IntN(3)))
	}
	column := columnar.Nullable("n", columnar.Int64, ints, 0, &valid)
	rec := columnar.Record(columnar.Schema([]columnar.Field{column.Field}, nil), []columnar.Column{column}, 100)
	defer rec.Release()
	for range 200 {
		from := r.IntN(100)
		to := from + r.IntN(100-from)
		part := rec.NewSlice(int64(from), int64(to))
		c, err := columnar.FromArray(part.Schema().Field(0), part.Column(0))
		if err != nil {
			t.Fatal(err)
		}
		if got := columnar.Read([]int64(nil), &c, 0); !slices.Equal(got, ints[from:to]) {
			t.Fatalf("rows %d to %d: got %v, expected %v", from, to, got, ints[from:to])
		}
		part.Release()
	}
}

func TestUnusableStreams(t *testing.T) {
	good := write(t, sample(), 3)
	var zstd bytes.Buffer
	rec := columnar.Record(columnar.Schema([]columnar.Field{{Name: "t", Type: columnar.Time}}, nil), sample()[:1], 3)
	defer rec.Release()
	w := ipc.NewWriter(&zstd, ipc.WithSchema(rec.Schema()), ipc.WithZstd())
	if err := errors.Join(w.Write(rec), w.Close()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		body     []byte
		rows     int
		expected string
	}{
		{"nothing", nil, 3, "stream ends before its record batch"},
		{"half", good[:len(good)/2], 3, "bytes where"},
		{"too many rows", good, 2, "3 rows, expected at most 2"},
		{"two streams", append(slices.Clone(good), good...), 3, "more than one record batch"},
		{"compressed", zstd.Bytes(), 3, "compressed body"},
		{"text", []byte(strings.Repeat("hello, world ", 20)), 3, "metadata of"},
	} {
		var r columnar.Reader
		_, _, err := r.Read(c.body, c.rows)
		if err == nil || !strings.Contains(err.Error(), c.expected) || !errors.Is(err, columnar.ErrCorrupt) {
			t.Errorf("%s: got %v, expected %s", c.name, err, c.expected)
		}
	}
}

// No cut and no changed byte of a stream may do harm.
func TestDamagedStreamsDoNoHarm(t *testing.T) {
	good := write(t, sample(), 3)
	var r columnar.Reader
	for n := range good {
		if n+8 < len(good) {
			if _, _, err := r.Read(good[:n], 3); err == nil {
				t.Fatalf("the first %d of %d bytes are a stream", n, len(good))
			}
		}
		for _, bit := range []byte{1, 0x80, 0xff} {
			bad := slices.Clone(good)
			bad[n] ^= bit
			touch(&r, bad)
		}
	}
}

// touch reads all that a stream gives.
func touch(r *columnar.Reader, body []byte) {
	b, _, err := r.Read(body, 1000)
	if err != nil {
		return
	}
	for i := range b.Columns {
		touchColumn(&b.Columns[i])
	}
}

func touchColumn(c *columnar.Column) {
	switch c.Type {
	case columnar.Utf8:
		columnar.ReadTexts(nil, c, 1000)
	case columnar.DictUtf8:
		columnar.ReadCodes(nil, c, 10)
		if c.Dict != nil {
			touchColumn(c.Dict)
		}
	case columnar.Binary16:
		columnar.Read([][16]byte(nil), c, [16]byte{})
	case columnar.Int64, columnar.Time:
		columnar.Read([]int64(nil), c, 0)
	case columnar.Uint8:
		columnar.Read([]uint8(nil), c, 0)
	case columnar.Uint16:
		columnar.Read([]uint16(nil), c, 0)
	case columnar.ListInt64, columnar.ListUint16:
		for i := range c.Len {
			_ = c.Offset(i + 1)
		}
		if c.Child != nil {
			touchColumn(c.Child)
		}
	}
}

func FuzzReader(f *testing.F) {
	f.Add(write(f, sample(), 3))
	f.Add(write(f, sample()[:2], 3))
	f.Add([]byte{255, 255, 255, 255, 8, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, body []byte) {
		var r columnar.Reader
		if _, _, err := r.Read(body, 1000); err != nil && !errors.Is(err, columnar.ErrCorrupt) && !errors.Is(err, columnar.ErrColumn) {
			t.Fatalf("%v wraps neither ErrCorrupt nor ErrColumn", err)
		}
		touch(&r, body)
		touch(&r, body)
	})
}
