package event_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/klauspost/compress/s2"

	"penstock/schemas/event"
)

// fullBatch returns rows of which every column has values and absent ones.
func fullBatch(rows int) *event.Requests {
	r := rand.New(rand.NewPCG(1, uint64(rows)))
	b := new(event.Requests)
	pick := func(kind string, n int) string {
		if i := r.IntN(n + 1); i > 0 {
			return fmt.Sprint(kind, "-é-", i)
		}
		return ""
	}
	null := func(v int64) int64 {
		if r.IntN(4) == 0 {
			return event.NullInt
		}
		return v
	}
	for i := range rows {
		q := event.NewRequest(1_431_943_200_000_000 + int64(i)*1_000)
		q.Mark, q.Op = event.Timing(r.IntN(3)), event.Op(r.IntN(2))
		q.N, q.K = uint8(r.IntN(3)), uint8(r.IntN(3))
		q.Status = int32(r.IntN(4)*200) - 1
		if r.IntN(3) > 0 {
			q.Lat, q.Lon = r.Float32()*180-90, r.Float32()*360-180
		}
		q.Bytes = r.Int64N(event.MaxRequestBytes + 1)
		q.Wait, q.Service, q.Network, q.Overdue = null(r.Int64N(1e6)), null(-5), null(r.Int64N(9)), null(0)
		if r.IntN(2) > 0 {
			q.Trace[15] = byte(i)
		}
		q.ID, q.User, q.Owner = pick("id", 1<<30), pick("user", 9), pick("owner", 99)
		q.FromComponent, q.FromSite = pick("from", 2), pick("site", 2)
		q.ToComponent, q.ToSite, q.ToServer = pick("to", 3), pick("site", 3), pick("server", 4)
		q.Class, q.Outcome = pick("class", 2), pick("outcome", 1)
		b.Append(&q)
	}
	return b
}

func sameRows(t *testing.T, got, expected *event.Requests) {
	t.Helper()
	if got.Len() != expected.Len() {
		t.Fatalf("%d rows, expected %d", got.Len(), expected.Len())
	}
	for i := range got.Len() {
		if g, e := got.Row(i), expected.Row(i); !sameRow(g, e) {
			t.Fatalf("row %d: got\n%+v\nexpected\n%+v", i, g, e)
		}
	}
	if got.Size() != expected.Size() {
		t.Errorf("size %d, expected %d", got.Size(), expected.Size())
	}
}

// sameRow compares two rows; an absent position, which is NaN, equals itself.
func sameRow(a, b event.Request) bool {
	for _, p := range []*float32{&a.Lat, &a.Lon, &b.Lat, &b.Lon} {
		if *p != *p {
			*p = 1000
		}
	}
	return a == b
}

func TestWhatIsEncodedIsDecoded(t *testing.T) {
	var e event.Encoder
	var d event.Decoder
	var got event.Requests
	for _, rows := range []int{0, 1, 7, 8, 9, 1000, event.MaxRows, 3} {
		b := fullBatch(rows)
		body, err := e.Encode([]byte("before"), b)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(body, []byte("before")) {
			t.Fatal("Encode overwrote dst")
		}
		if err := d.Decode(body[6:], event.EncodingS2, &got); err != nil {
			t.Fatalf("%d rows: %v", rows, err)
		}
		sameRows(t, &got, b)
	}
}

// A (run, partition, sequence) names the same rows for ever: whoever encodes
// them again, with whatever memory, gets the same bytes.
func TestEqualRowsHaveEqualBytes(t *testing.T) {
	var fresh, used event.Encoder
	if _, err := used.Encode(nil, fullBatch(3000)); err != nil {
		t.Fatal(err)
	}
	reused := fullBatch(700)
	reused.Reset()
	original := fullBatch(500)
	for i := range original.Len() {
		q := original.Row(i)
		reused.Append(&q)
	}
	a, err := fresh.Encode(nil, original)
	if err != nil {
		t.Fatal(err)
	}
	b, err := used.Encode(nil, reused)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a, b) {
		t.Error("other bytes for the same rows")
	}
}

func TestArrowsOwnReaderReadsABatch(t *testing.T) {
	b := fullBatch(1000)
	var e event.Encoder
	body, err := e.Encode(nil, b)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := s2.Decode(nil, body)
	if err != nil {
		t.Fatal(err)
	}
	r, err := ipc.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	if !r.Next() {
		t.Fatalf("no record: %v", r.Err())
	}
	rec := r.Record()
	if s := rec.Schema(); s.String() == "" || !reflect.DeepEqual(fieldsOf(s), fieldsOf(event.ArrowSchema())) {
		t.Fatalf("schema\n%v\nexpected\n%v", s, event.ArrowSchema())
	}
	var got event.Requests
	if err := event.FromRecord(rec, &got); err != nil {
		t.Fatal(err)
	}
	sameRows(t, &got, b)
	if r.Next() {
		t.Error("a second record")
	}
}

func fieldsOf(s *arrow.Schema) []string {
	var out []string
	for _, f := range s.Fields() {
		out = append(out, fmt.Sprint(f))
	}
	return out
}

func TestABatchOfArrowsOwnWriterIsRead(t *testing.T) {
	b := fullBatch(500)
	rec, err := event.Record(b)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Release()
	var buf bytes.Buffer
	w := ipc.NewWriter(&buf, ipc.WithSchema(rec.Schema()))
	if err := w.Write(rec); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var d event.Decoder
	var got event.Requests
	if err := d.Decode(buf.Bytes(), "", &got); err != nil {
		t.Fatal(err)
	}
	sameRows(t, &got, b)
}

func benchBatch() *event.Requests {
	r := rand.New(rand.NewPCG(1, 2))
	b := new(event.Requests)
	for i := range event.MaxRows {
		q := event.NewRequest(1_431_943_200_000_000 + int64(i)*21_000)
		q.Op = event.Op(r.IntN(100) / 99)
		q.Status, q.Bytes = 200, 1000
		u := r.IntN(2500)
		q.User, q.Owner = fmt.Sprintf("user-%04d", u), fmt.Sprintf("user-%04d", r.IntN(2500))
		q.Lat, q.Lon = 40+float32(u)/100, -80+float32(u)/50
		q.ToSite, q.Class = fmt.Sprint("site-", r.IntN(3)), "dynamic"
		b.Append(&q)
	}
	return b
}

func BenchmarkEncode(b *testing.B) {
	batch := benchBatch()
	var e event.Encoder
	var body []byte
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if body, err = e.Encode(body[:0], batch); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(batch.Len()), "ns/row")
	b.ReportMetric(float64(len(body))/float64(batch.Len()), "B/row")
}

func BenchmarkEncodeEveryColumn(b *testing.B) {
	batch := fullBatch(event.MaxRows)
	var e event.Encoder
	var body []byte
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if body, err = e.Encode(body[:0], batch); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(batch.Len()), "ns/row")
	b.ReportMetric(float64(len(body))/float64(batch.Len()), "B/row")
}

func BenchmarkDecodeEveryColumn(b *testing.B) { benchDecode(b, fullBatch(event.MaxRows)) }

func benchDecode(b *testing.B, batch *event.Requests, columns ...string) {
	var e event.Encoder
	body, err := e.Encode(nil, batch)
	if err != nil {
		b.Fatal(err)
	}
	var d event.Decoder
	d.Columns(columns...)
	var into event.Requests
	b.ReportAllocs()
	for b.Loop() {
		if err := d.Decode(body, event.EncodingS2, &into); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(into.Len()), "ns/row")
}

func BenchmarkDecode(b *testing.B) { benchDecode(b, benchBatch()) }

func BenchmarkDecodeProjected(b *testing.B) {
	benchDecode(b, benchBatch(), "time", "mark", "op", "bytes", "user", "owner", "to_site", "lat", "lon")
}
