package event_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/klauspost/compress/s2"

	"penstock/schemas/columnar"
	"penstock/schemas/event"
)

// columnsOf returns the columns of a batch, for tests that spoil some.
func columnsOf(t testing.TB, b *event.Requests) []columnar.Column {
	t.Helper()
	rec, err := event.Record(b)
	if err != nil {
		t.Fatal(err)
	}
	var out []columnar.Column
	for i, f := range rec.Schema().Fields() {
		c, err := columnar.FromArray(f, rec.Column(i))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, c)
	}
	return out
}

func streamOf(t testing.TB, columns []columnar.Column, rows int) []byte {
	t.Helper()
	var w columnar.Writer
	b, err := w.Write(nil, columns, rows, nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// replace returns the columns with one in place of that of its name.
func replace(columns []columnar.Column, c columnar.Column) []columnar.Column {
	out := slices.Clone(columns)
	i := slices.IndexFunc(out, func(o columnar.Column) bool { return o.Name == c.Name })
	out[i] = c
	return out
}

func TestUnusableColumnsAreNamed(t *testing.T) {
	const rows = 3
	b := fullBatch(rows)
	all := columnsOf(t, b)
	var valid []byte
	one := func(name string, codes []int32, values ...string) columnar.Column {
		return columnar.Dictionary(name, codes, values, new(columnar.TextMemory))
	}
	lostDict := one("owner", []int32{0, 0, 0}, "a")
	lostDict.Dict = nil
	lostDict.Type = columnar.Int32
	for _, c := range []struct {
		column   columnar.Column
		expected string
	}{
		{columnar.Fixed("time", columnar.Int64, []int64{1, 2, 3}), "column time: got int64, expected timestamp[us, UTC]"},
		{columnar.Fixed("time", columnar.Time, []int64{1, math.MaxInt64, 3}), "column time: row 1: got 9223372036854775807, expected a time between 1900 and 2200 in µs"},
		{columnar.Nullable("time", columnar.Time, []int64{1, 0, 3}, 0, &valid), "column time: 1 rows are absent, expected none"},
		{columnar.Fixed("mark", columnar.Uint8, []uint8{0, 1, 3}), "column mark: row 2: got 3, expected 0, 1 or 2"},
		{columnar.Fixed("bytes", columnar.Int64, []int64{0, 1, -3}), "column bytes: row 2: got -3, expected 0 to 137438953472"},
		{columnar.Fixed("bytes", columnar.Int64, []int64{0, event.MaxRequestBytes + 1, 0}), "column bytes: row 1: got 137438953473, expected 0 to 137438953472"},
		{columnar.Fixed("wait_us", columnar.Int64, []int64{0, -event.MaxDelay, event.MaxDelay + 1}), "column wait_us: row 2: got 3162240000000001, expected microseconds, at most 100 years either way"},
		{columnar.Fixed("overdue_us", columnar.Int64, []int64{event.NullInt, math.MinInt64 + 1, 0}), "column overdue_us: row 1: got -9223372036854775807, expected microseconds, at most 100 years either way"},
		{columnar.Fixed("lat", columnar.Float32, []float32{0, -90.5, 0}), "column lat: row 1: got -90.5, expected degrees from -90 to 90"},
		{columnar.Fixed("lon", columnar.Float32, []float32{0, 0, float32(math.Inf(1))}), "column lon: row 2: got +Inf, expected degrees from -180 to 180"},
		{columnar.Fixed("status", columnar.Int64, []int64{200, 1, 2}), "column status: got int64, expected uint16"},
		{columnar.Fixed("trace", columnar.Int32, []int32{1, 2, 3}), "column trace: got int32, expected fixed_size_binary[16]"},
		{columnar.Fixed("owner", columnar.Int64, []int64{1, 2, 3}), "column owner: got int64, expected dictionary<int32, utf8>"},
		{one("op", []int32{0, 1, 0}, "read", "GET"), `column op: got "GET", expected read or write`},
		{one("op", []int32{0, -1, 0}, "read"), "column op: 1 rows are absent, expected none"},
		{one("op", []int32{0, 1, 0}, "read", ""), "column op: row 1 is absent, expected read or write"},
		{one("owner", []int32{0, 1, 0}, "a"), "column owner: code 1, expected one below 1"},
		{one("owner", []int32{0, -7, 0}, "a"), "column owner: code -7, expected one below 1"},
		{one("owner", []int32{0, 0, 0}, "\xff\xfe"), `column owner: row 0: got "\xff\xfe", expected UTF-8`},
		{one("owner", []int32{0, 1, 0}, "é"[:1], "é"[1:]), `column owner: row 0: got "\xc3", expected UTF-8`},
		{one("owner", []int32{0, 0, 0}, strings.Repeat("x", event.MaxID+1)), "column owner: row 0 has 1025 bytes, expected at most 1024"},
	} {
		into := fullBatch(5)
		err := new(event.Decoder).Decode(streamOf(t, replace(all, c.column), rows), "", into)
		if err == nil || !strings.HasPrefix(err.Error(), c.expected+": ") || !errors.Is(err, event.ErrUndecodable) {
			t.Errorf("got %v\nexpected %s", err, c.expected)
		}
		if into.Len() != 0 || into.Owner.Len() != 0 || into.Size() != 0 {
			t.Errorf("%s: %d rows are left", c.expected, into.Len())
		}
	}
	for _, missing := range []string{"time", "mark", "op", "bytes"} {
		some := slices.DeleteFunc(slices.Clone(all), func(c columnar.Column) bool { return c.Name == missing })
		err := new(event.Decoder).Decode(streamOf(t, some, rows), "", new(event.Requests))
		if err == nil || !strings.HasPrefix(err.Error(), "column "+missing+": missing, expected ") {
			t.Errorf("%s: got %v", missing, err)
		}
	}
	err := new(event.Decoder).Decode(streamOf(t, replace(all, lostDict), rows), "", new(event.Requests))
	if err == nil || !strings.HasPrefix(err.Error(), "column owner: got int32, expected dictionary<int32, utf8>: ") {
		t.Errorf("got %v", err)
	}
}

func TestUnusableBodies(t *testing.T) {
	var e event.Encoder
	good, err := e.Encode(nil, fullBatch(3))
	if err != nil {
		t.Fatal(err)
	}
	claim := append(s2.Encode(nil, nil)[:0], 0xff, 0xff, 0xff, 0xff, 0x0f) // A length of 4 GiB.
	for _, c := range []struct {
		name     string
		body     []byte
		encoding string
		expected string
	}{
		{"another encoding", good, "gzip", `header Penstock-Encoding: got "gzip", expected none, s2 or jsonl`},
		{"not compressed", good, "", "metadata of"},
		{"not s2", []byte("hello, world"), "s2", "body is not s2"},
		{"cut", good[:len(good)/2], "s2", "body is not s2"},
		{"a great claim", claim, "s2", "body of 4294967295 bytes, expected at most 8388608"},
		{"a bomb", s2.Encode(nil, make([]byte, event.MaxDecoded+1)), "s2", "body of 8388609 bytes, expected at most 8388608"},
		{"too large", make([]byte, event.MaxDecoded+1), "", "body of 8388609 bytes, expected at most 8388608"},
		{"nothing", nil, "", "stream ends before its record batch"},
	} {
		err := new(event.Decoder).Decode(c.body, c.encoding, new(event.Requests))
		if err == nil || !strings.Contains(err.Error(), c.expected) || !errors.Is(err, event.ErrUndecodable) {
			t.Errorf("%s: got %v\nexpected %s", c.name, err, c.expected)
		}
	}
}

func TestColumnsLeavesTheOthersOut(t *testing.T) {
	b := fullBatch(100)
	var e event.Encoder
	body, err := e.Encode(nil, b)
	if err != nil {
		t.Fatal(err)
	}
	var d event.Decoder
	got := *fullBatch(7) // What was there before is not left over.
	d.Columns("owner", "bytes")
	if err := d.Decode(body, event.EncodingS2, &got); err != nil {
		t.Fatal(err)
	}
	if got.Len() != 100 || !slices.Equal(got.Time, b.Time) || !slices.Equal(got.Bytes, b.Bytes) {
		t.Error("time and bytes are not as sent")
	}
	for i := range got.Len() {
		if got.Owner.At(i) != b.Owner.At(i) {
			t.Fatalf("row %d: owner %q, expected %q", i, got.Owner.At(i), b.Owner.At(i))
		}
	}
	if got.Mark != nil || got.Op != nil || got.Lat != nil || got.Status != nil || got.Trace != nil || got.N != nil ||
		got.Wait != nil || got.User.Codes != nil || got.User.Values != nil || got.ID.Codes != nil {
		t.Errorf("columns that were not asked for: %+v", got)
	}
	d.Columns()
	if err := d.Decode(body, event.EncodingS2, &got); err != nil {
		t.Fatal(err)
	}
	sameRows(t, &got, b)
	defer func() {
		if recover() == nil {
			t.Error("a column that does not exist was taken")
		}
	}()
	d.Columns("owners")
}

// What only some rows have is decoded only of batches with such rows.
func TestColumnsOfRowsOfOneSort(t *testing.T) {
	var plain, tasks event.Requests
	r := event.NewRequest(1)
	r.ToServer, r.N, r.K = "east-1", 6, 3
	plain.Append(&r)
	tasks.Append(&r)
	r.Outcome = "done"
	tasks.Append(&r)
	var e event.Encoder
	var d event.Decoder
	d.Columns("bytes")
	d.ColumnsWith("outcome", "to_server", "n")
	for range 2 { // In turn: what one batch has, the next may lack.
		var got event.Requests
		for _, b := range []*event.Requests{&plain, &tasks} {
			body, err := e.Encode(nil, b)
			if err != nil {
				t.Fatal(err)
			}
			if err := d.Decode(body, event.EncodingS2, &got); err != nil {
				t.Fatal(err)
			}
			if got.K != nil || len(got.Bytes) != b.Len() || len(got.Outcome.Codes) != b.Len() {
				t.Errorf("columns that were not asked for, or not those that were: %+v", got)
			}
			with := b == &tasks
			if (got.N != nil) != with || (got.ToServer.Codes != nil) != with || with && (got.N[1] != 6 || got.ToServer.At(1) != "east-1" || got.Outcome.At(1) != "done") {
				t.Errorf("with tasks %v: %+v", with, got)
			}
		}
	}
}

// Rows of several sorts have columns of their own, each with its key.
func TestColumnsOfRowsOfSeveralSorts(t *testing.T) {
	var d event.Decoder
	d.Columns("bytes")
	d.ColumnsWith("outcome", "n")
	d.ColumnsWith("overdue_us", "class")
	d.ColumnsWith("to_server", "class", "status")
	for i, change := range []func(r *event.Request){
		func(*event.Request) {},
		func(r *event.Request) { r.Outcome = "done" },
		func(r *event.Request) { r.Overdue = 0 },
		func(r *event.Request) { r.ToServer = "web-1" },
		func(r *event.Request) { r.ToServer, r.Outcome = "web-1", "done" },
	} {
		r := event.NewRequest(1)
		r.Class, r.N = "dynamic", 3
		change(&r)
		var b, got event.Requests
		b.Append(&r)
		body, err := new(event.Encoder).Encode(nil, &b)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Decode(body, event.EncodingS2, &got); err != nil {
			t.Fatal(err)
		}
		if len(got.Outcome.Codes) != 1 || len(got.Overdue) != 1 || len(got.ToServer.Codes) != 1 || got.Wait != nil {
			t.Errorf("%d: keys %+v", i, got)
		}
		task, limit, server := r.Outcome != "", r.Overdue != event.NullInt, r.ToServer != ""
		if (got.N != nil) != task || (got.Class.Codes != nil) != (limit || server) || (got.Status != nil) != server {
			t.Errorf("%d: %+v", i, got)
		}
	}
}

// A decoder that is used for two batches must not let one change the other.
func TestBatchesOfOneDecoderAreApart(t *testing.T) {
	var e event.Encoder
	var d event.Decoder
	var first, second event.Requests
	one, two := fullBatch(50), fullBatch(60)
	for _, c := range []struct{ in, into *event.Requests }{{one, &first}, {two, &second}} {
		body, err := e.Encode(nil, c.in)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Decode(body, event.EncodingS2, c.into); err != nil {
			t.Fatal(err)
		}
	}
	sameRows(t, &first, one)
	sameRows(t, &second, two)
	// A decoded batch can be appended to.
	q := event.NewRequest(1)
	q.Owner = one.Owner.Values[0]
	n := len(first.Owner.Values)
	first.Append(&q)
	if first.Len() != 51 || len(first.Owner.Values) != n || first.Owner.At(50) != q.Owner {
		t.Error("an owner that is there already was added again")
	}
}

func TestRepeatedAndEmptyValuesOfADictionary(t *testing.T) {
	b := new(event.Requests)
	for range 6 {
		q := event.NewRequest(1)
		b.Append(&q)
	}
	var text columnar.TextMemory
	c := columnar.Dictionary("owner", []int32{0, 1, 2, 3, 4, -1}, []string{"a", "", "b", "a", "b"}, &text)
	var got event.Requests
	if err := new(event.Decoder).Decode(streamOf(t, replace(columnsOf(t, b), c), 6), "", &got); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Owner.Codes, []int32{0, -1, 1, 0, 1, -1}) || !slices.Equal(got.Owner.Values, []string{"a", "b"}) {
		t.Errorf("got %v of %q", got.Owner.Codes, got.Owner.Values)
	}
}

func TestDecodingAllocatesByColumnNotByRow(t *testing.T) {
	count := func(rows int) float64 {
		var e event.Encoder
		var d event.Decoder
		var into event.Requests
		b := fullBatch(rows)
		body, err := e.Encode(nil, b)
		if err != nil {
			t.Fatal(err)
		}
		out := make([]byte, 0, 2*len(body))
		return testing.AllocsPerRun(10, func() {
			if err := d.Decode(body, event.EncodingS2, &into); err != nil {
				t.Fatal(err)
			}
			if out, err = e.Encode(out[:0], &into); err != nil {
				t.Fatal(err)
			}
		})
	}
	few, many := count(64), count(event.MaxRows)
	// One allocation for the texts of each of the eleven columns that have some.
	if few > 12 || many > 12 {
		t.Errorf("%v allocations for 64 rows, %v for %d; expected at most 12", few, many, event.MaxRows)
	}
}

func TestWhatCannotBeEncoded(t *testing.T) {
	short := fullBatch(3)
	short.Bytes = short.Bytes[:2]
	code := fullBatch(3)
	code.Owner.Codes[1] = 99
	long := new(event.Requests)
	for i := range event.MaxRows {
		q := event.NewRequest(1)
		q.ID = fmt.Sprintf("%01024d", i)
		q.User = q.ID
		long.Append(&q)
	}
	for _, c := range []struct {
		b        *event.Requests
		expected string
	}{
		{fullBatch(event.MaxRows + 1), "batch of 8193 rows, expected at most 8192: invalid request"},
		{short, "column bytes: 2 rows, expected 3: invalid request"},
		{code, "column owner: a code that is not among its"},
		{long, "expected at most 8388608: invalid request"},
	} {
		var e event.Encoder
		got, err := e.Encode([]byte("dst"), c.b)
		if err == nil || !strings.Contains(err.Error(), c.expected) || !errors.Is(err, event.ErrInvalid) || string(got) != "dst" {
			t.Errorf("got %q, %v\nexpected %s", got, err, c.expected)
		}
	}
}

// Recordings of other tools have other index types, no dictionaries, or large
// texts, and rows beyond a batch's.
func TestRecordsOfOtherToolsAreRead(t *testing.T) {
	const rows = 10_000
	mem := memory.DefaultAllocator
	field := func(name string, typ arrow.DataType) arrow.Field {
		return arrow.Field{Name: name, Type: typ, Nullable: true}
	}
	index8 := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Uint8, ValueType: arrow.BinaryTypes.String}
	index64 := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int64, ValueType: arrow.BinaryTypes.String}
	schema := arrow.NewSchema([]arrow.Field{
		field("unknown", arrow.PrimitiveTypes.Float64), field("time", columnar.DataType(columnar.Time)), field("mark", arrow.PrimitiveTypes.Uint8),
		field("op", index8), field("bytes", arrow.PrimitiveTypes.Int64), field("owner", arrow.BinaryTypes.String),
		field("user", arrow.BinaryTypes.LargeString), field("to_site", index64),
	}, nil)
	rb := array.NewRecordBuilder(mem, schema)
	defer rb.Release()
	for i := range rows {
		rb.Field(0).(*array.Float64Builder).AppendNull()
		rb.Field(1).(*array.TimestampBuilder).Append(arrow.Timestamp(i))
		rb.Field(2).(*array.Uint8Builder).Append(0)
		rb.Field(3).(*array.BinaryDictionaryBuilder).AppendString([]string{"write", "read"}[i%2])
		rb.Field(4).(*array.Int64Builder).Append(int64(i))
		if i%3 == 0 {
			rb.Field(5).AppendNull()
			rb.Field(6).AppendNull()
			rb.Field(7).AppendNull()
			continue
		}
		rb.Field(5).(*array.StringBuilder).Append(fmt.Sprint("owner", i%7))
		rb.Field(6).(*array.LargeStringBuilder).Append(fmt.Sprint("user", i%5))
		rb.Field(7).(*array.BinaryDictionaryBuilder).AppendString(fmt.Sprint("site", i%2))
	}
	rec := rb.NewRecord()
	defer rec.Release()
	for _, cut := range []int64{0, 3, 1000} {
		part := rec.NewSlice(cut, rows)
		var got event.Requests
		if err := event.FromRecord(part, &got); err != nil {
			t.Fatal(err)
		}
		if got.Len() != rows-int(cut) || len(got.Owner.Values) != 7 || len(got.User.Values) != 5 {
			t.Fatalf("%d rows, owners %q, users %q", got.Len(), got.Owner.Values, got.User.Values)
		}
		for i := range got.Len() {
			n := i + int(cut)
			expected := event.NewRequest(int64(n))
			expected.Op, expected.Bytes = []event.Op{event.Write, event.Read}[n%2], int64(n)
			if n%3 != 0 {
				expected.Owner, expected.User, expected.ToSite = fmt.Sprint("owner", n%7), fmt.Sprint("user", n%5), fmt.Sprint("site", n%2)
			}
			if r := got.Row(i); !sameRow(r, expected) {
				t.Fatalf("row %d: got %+v\nexpected %+v", n, r, expected)
			}
		}
		part.Release()
	}
}

func TestUnusableRecords(t *testing.T) {
	b := fullBatch(3)
	rec, err := event.Record(b)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Release()
	schema := arrow.NewSchema(rec.Schema().Fields()[1:], nil)
	some := array.NewRecord(schema, rec.Columns()[1:], 3)
	defer some.Release()
	into := fullBatch(5)
	if err := event.FromRecord(some, into); err == nil || !strings.HasPrefix(err.Error(), "column time: missing, expected timestamp[us, UTC]: ") || into.Len() != 0 {
		t.Errorf("got %v beside %d rows", err, into.Len())
	}
	short := fullBatch(3)
	short.Time = short.Time[:1]
	if _, err := event.Record(short); !errors.Is(err, event.ErrInvalid) {
		t.Errorf("got %v", err)
	}
}

// A stream of Arrow's own writer with replaced or delta dictionaries, or more
// than one batch, is not a batch of ours.
func TestAStreamOfTwoBatchesIsRefused(t *testing.T) {
	rec, err := event.Record(fullBatch(3))
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Release()
	var buf bytes.Buffer
	w := ipc.NewWriter(&buf, ipc.WithSchema(rec.Schema()))
	if err := errors.Join(w.Write(rec), w.Write(rec), w.Close()); err != nil {
		t.Fatal(err)
	}
	var got event.Requests
	if err := new(event.Decoder).Decode(buf.Bytes(), "", &got); err == nil || !strings.Contains(err.Error(), "more than one record batch") {
		t.Errorf("got %v", err)
	}
}
