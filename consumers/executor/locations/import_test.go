package locations

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/infra/objectstore"
	"penstock/infra/objectstore/dir"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// told reads the imported outcomes that the bus holds, in order.
func told(t *testing.T, c *bus.Client) []*control.Outcome {
	t.Helper()
	var out []*control.Outcome
	ok(t, c.Each(t.Context(), subject.OutcomesStream, []string{subject.OutcomesOf("placement")}, 0, func(m bus.Msg) error {
		o, err := control.DecodeOutcome(m.Data)
		if err == nil && IsImport(m) != (o.Status == control.Imported) {
			t.Errorf("%s is an import: %v", o.Status, IsImport(m))
		}
		if err == nil && o.Status == control.Imported {
			out = append(out, o)
		}
		return err
	}))
	return out
}

func csvOf(n int, site string) string {
	var b strings.Builder
	b.WriteString("owner,site\n")
	for i := range n {
		fmt.Fprintf(&b, "owner-%05d,%s\n", i, site)
	}
	return b.String()
}

// TestDecidersAreTold: an import tells of each entry once, in order, after it was
// written; a repeat is no second one, and goes on where another was cut off.
func TestDecidersAreTold(t *testing.T) {
	const n = 2*bus.MaxBatch + 7
	c := bustest.Client(t, bustest.Start(t, func(o *bus.Options) { o.Prefix, o.Sync = "P", bus.SyncInterval }))
	kv, err := Open(t.Context(), c)
	ok(t, err)
	tell := NewTeller(c, "ann@host", t0).Tell
	cut := errors.New("cut off")
	calls := 0
	o := ImportOptions{Now: t0, Tell: func(ctx context.Context, e []Entry) error {
		if calls++; calls == 2 {
			return cut
		}
		return tell(ctx, e)
	}}
	if _, err := Import(t.Context(), strings.NewReader(csvOf(n, "a")), kv, o); !errors.Is(err, cut) {
		t.Fatalf("got %v", err)
	}
	if got := len(told(t, c)); got != bus.MaxBatch {
		t.Fatalf("%d told before the cut", got)
	}
	var progress []int
	o.Tell, o.Progress = tell, func(done, of int) { progress = append(progress, done, of) }
	rep, err := Import(t.Context(), strings.NewReader(csvOf(n, "a")), kv, o)
	ok(t, err)
	if rep.Rows != n || rep.Written != 7 || rep.Unchanged != 2*bus.MaxBatch {
		t.Errorf("after the cut: %+v", rep)
	}
	if !slices.Equal(progress, []int{bus.MaxBatch, n, 2 * bus.MaxBatch, n, n, n}) {
		t.Errorf("progress %v", progress)
	}
	for range 2 {
		got := told(t, c)
		if len(got) != n {
			t.Fatalf("%d told of, expected %d", len(got), n)
		}
		seen := map[string]bool{}
		for _, x := range got {
			if x.Scope != "a" || x.Move != 0 || x.Pinned || x.By != "ann@host" || !x.At.Equal(t0) || seen[x.Owner] {
				t.Fatalf("told %+v", x)
			}
			seen[x.Owner] = true
		}
		rep, err = Import(t.Context(), strings.NewReader(csvOf(n, "a")), kv, o)
		ok(t, err)
		if rep.Unchanged != n {
			t.Errorf("repeated: %+v", rep)
		}
	}
	// What changes is told anew, under the version that it has now.
	o.Overwrite, o.Progress = true, nil
	rep, err = Import(t.Context(), strings.NewReader("owner,site,pinned\nowner-00003,b,true\nnew,b,\n"), kv, o)
	ok(t, err)
	got := told(t, c)[n:]
	slices.SortFunc(got, func(a, b *control.Outcome) int { return strings.Compare(a.Owner, b.Owner) })
	if rep.Written != 2 || len(got) != 2 || got[0].Owner != "new" || got[1].Owner != "owner-00003" || got[1].Move != 1 || !got[1].Pinned || got[1].Scope != "b" {
		t.Errorf("%+v, told %+v", rep, got)
	}
}

// TestImportsOfOthersAreSeen: an entry that somebody writes between the look at
// the table and the write is compared with, not overwritten.
func TestImportsOfOthersAreSeen(t *testing.T) {
	eachTable(t, func(t *testing.T, table Table) {
		x := &racing{Bulk: table.(Bulk), t: t}
		rep, err := Import(t.Context(), strings.NewReader(csvOf(few+10, "a")), x, ImportOptions{Now: t0})
		ok(t, err)
		if rep.Written != few+9 || rep.Unused != 1 || !strings.Contains(rep.Bad[0].Err.Error(), "b, where the owner is at version 9") {
			t.Errorf("%+v", rep)
		}
		if l := all(t, table)["owner-00004"]; l != at("b", 9) {
			t.Errorf("the other's entry is %+v", l)
		}
	})
}

// racing is a table to which somebody else writes before the first batch.
type racing struct {
	Bulk
	t    *testing.T
	once bool
}

func (r *racing) SetAll(ctx context.Context, entries []Entry) error {
	if !r.once {
		r.once = true
		_, err := r.Set(ctx, "owner-00004", at("b", 9), 0)
		ok(r.t, err)
	}
	return r.Bulk.SetAll(ctx, entries)
}

func TestSetAll(t *testing.T) {
	eachTable(t, func(t *testing.T, table Table) {
		bulk := table.(Bulk)
		entries := []Entry{{Owner: "x@y", Location: at("a", 1)}, {Owner: "z", Location: at("b", 2)}}
		ok(t, bulk.SetAll(t.Context(), entries))
		for _, e := range entries {
			if l, revision, err := table.Get(t.Context(), e.Owner); err != nil || l != e.Location || revision != e.Revision || revision == 0 {
				t.Errorf("%+v is %+v at %d, %v", e, l, revision, err)
			}
		}
		old := slices.Clone(entries)
		old[1].Revision = 0
		if err := bulk.SetAll(t.Context(), old); !errors.Is(err, ErrConflict) {
			t.Errorf("an old revision: %v", err)
		}
		entries[0].Location, entries[1].Location = at("b", 3), at("a", 3)
		ok(t, bulk.SetAll(t.Context(), entries))
		got := map[string]Entry{}
		ok(t, bulk.Entries(t.Context(), func(e Entry) error { got[e.Owner] = e; return nil }))
		if got["x@y"] != entries[0] || got["z"] != entries[1] {
			t.Errorf("listed %+v, expected %+v", got, entries)
		}
	})
}

func TestParquetIsTheSame(t *testing.T) {
	table := NewMemory()
	pinned := at("b", 7)
	pinned.Pinned = true
	for owner, l := range map[string]control.Location{"z": at("a", 0), "a@b.c": pinned, "new\nline": at("a", 2), "ü": at("a", 1<<63)} {
		_, err := table.Set(t.Context(), owner, l, 0)
		ok(t, err)
	}
	for range groupRows { // more than one group
		_, err := table.Set(t.Context(), fmt.Sprint("n", len(table.entries)), at("a", 1), 0)
		ok(t, err)
	}
	var columnar, text bytes.Buffer
	n, err := Export(t.Context(), &columnar, table, Parquet)
	if err != nil || n != groupRows+4 {
		t.Fatal(n, err)
	}
	copied := NewMemory()
	rep, err := Import(t.Context(), struct{ *bytes.Buffer }{&columnar}, copied, ImportOptions{Strict: true})
	if err != nil || rep.Written != n {
		t.Fatal(rep, err)
	}
	_, err = Export(t.Context(), &text, copied, CSV)
	ok(t, err)
	var want bytes.Buffer
	_, err = Export(t.Context(), &want, table, CSV)
	ok(t, err)
	if text.String() != want.String() {
		t.Error("what went through Parquet is another table")
	}
	empty := bytes.Buffer{}
	if n, err := Export(t.Context(), &empty, NewMemory(), Parquet); err != nil || n != 0 {
		t.Error(n, err)
	}
	if rep, err := Import(t.Context(), bytes.NewReader(empty.Bytes()), NewMemory(), ImportOptions{}); err != nil || rep.Rows != 0 {
		t.Errorf("an empty table: %+v, %v", rep, err)
	}
	for _, body := range []string{parquetMagic, parquetMagic + strings.Repeat("x", 50) + parquetMagic} {
		if _, err := Import(t.Context(), strings.NewReader(body), NewMemory(), ImportOptions{}); err == nil {
			t.Errorf("%q is taken", body)
		}
	}
}

// TestParquetOfOthers: what other programs write has other types that say the
// same, and cells that say nothing usable.
func TestParquetOfOthers(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "site", Type: &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}},
		{Name: "owner", Type: arrow.BinaryTypes.Binary},
		{Name: "version", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
		{Name: "since", Type: arrow.FixedWidthTypes.Timestamp_ms, Nullable: true},
		{Name: "pinned", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "bytes", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	for i, owner := range []string{"fine", "negative", "bare", "\xff"} {
		ok(t, b.Field(0).(*array.BinaryDictionaryBuilder).AppendString("a"))
		b.Field(1).(*array.BinaryBuilder).Append([]byte(owner))
		if i == 2 {
			b.Field(2).AppendNull()
			b.Field(3).AppendNull()
			b.Field(4).AppendNull()
			b.Field(5).AppendNull()
			continue
		}
		b.Field(2).(*array.Int32Builder).Append([]int32{3, -1, 0, 1}[i])
		b.Field(3).(*array.TimestampBuilder).Append(arrow.Timestamp(t0.UnixMilli()))
		b.Field(4).(*array.StringBuilder).Append("true")
		b.Field(5).(*array.Int64Builder).Append(18231)
	}
	var out bytes.Buffer
	w, err := pqarrow.NewFileWriter(schema, &out, parquet.NewWriterProperties(), pqarrow.NewArrowWriterProperties(pqarrow.WithStoreSchema()))
	ok(t, err)
	ok(t, w.Write(b.NewRecord()))
	ok(t, w.Close())
	table := NewMemory()
	now := t0.Add(time.Hour)
	bytesOf := map[string]int64{}
	rep, err := Import(t.Context(), bytes.NewReader(out.Bytes()), table, ImportOptions{Now: now, Tell: func(_ context.Context, entries []Entry) error {
		for _, e := range entries {
			bytesOf[e.Owner] = e.Bytes
		}
		return nil
	}})
	ok(t, err)
	if rep.Rows != 4 || rep.Written != 2 || rep.Unused != 2 || rep.Bad[0].Line != 3 || rep.Bad[1].Line != 5 {
		t.Errorf("%+v", rep)
	}
	fine := control.Location{Site: "a", Version: 3, State: control.Live, Since: t0.Truncate(time.Millisecond), Pinned: true}
	bare := control.Location{Site: "a", State: control.Live, Since: now}
	if got := all(t, table); got["fine"] != fine || got["bare"] != bare || bytesOf["fine"] != 18231 || bytesOf["bare"] != 0 {
		t.Errorf("%+v, bytes %v", got, bytesOf)
	}
}

// TestFromStores: an owner is where its only open copy is; of two nobody says
// which is the right one.
func TestFromStores(t *testing.T) {
	stores := map[string]objectstore.Store{}
	absent := objectstore.Mark{State: objectstore.Absent}
	for _, site := range []string{"a", "b"} {
		s, err := dir.Open(t.TempDir(), dir.Options{NoSync: true})
		ok(t, err)
		stores[site] = s
	}
	mark := func(site, owner string, m objectstore.Mark) {
		ok(t, stores[site].Mark(t.Context(), owner, absent, m))
	}
	mark("a", "plain", objectstore.Mark{})
	mark("b", "moved", objectstore.Mark{State: objectstore.Live, Version: 7})
	mark("a", "moved", objectstore.Mark{State: objectstore.Retired, Version: 7, Site: "b"})
	mark("a", "two", objectstore.Mark{})
	mark("b", "two", objectstore.Mark{State: objectstore.Live, Version: 2})
	mark("b", "coming", objectstore.Mark{State: objectstore.Incoming, Version: 1, By: "m"})
	mark("b", "elsewhere", objectstore.Mark{})
	table := NewMemory()
	_, err := table.Set(t.Context(), "elsewhere", at("a", 4), 0)
	ok(t, err)
	run := func(o ImportOptions) Imported {
		t.Helper()
		rows, err := FromStores(t.Context(), stores)
		ok(t, err)
		if rows.Closed != 2 {
			t.Errorf("%d closed copies", rows.Closed)
		}
		o.Now = t0
		rep, err := ImportRows(t.Context(), rows, table, o)
		ok(t, err)
		return rep
	}
	rep := run(ImportOptions{})
	if rep.Rows != 4 || rep.Written != 2 || rep.Unused != 2 {
		t.Errorf("%+v", rep)
	}
	want := []string{`field site: got "b", expected a, where the owner is at version 4`, `owner "two" has copies that may be written to at a and at b`}
	for i, b := range rep.Bad {
		if !strings.HasPrefix(b.Err.Error(), want[i]) {
			t.Errorf("%v, expected %s", b.Err, want[i])
		}
	}
	rep = run(ImportOptions{Overwrite: true})
	if got := all(t, table); rep.Written != 1 || rep.Unchanged != 2 || rep.Unused != 1 ||
		got["elsewhere"] != at("b", 5) || got["moved"] != at("b", 7) || got["plain"] != at("a", 0) || len(got) != 3 {
		t.Errorf("%+v, %+v", rep, got)
	}
}

// TestVerifyInPasses: the report does not depend on how many owners a pass looks
// at.
func TestVerifyInPasses(t *testing.T) {
	stores := map[string]objectstore.Store{}
	for _, site := range []string{"a", "b"} {
		s, err := dir.Open(t.TempDir(), dir.Options{NoSync: true})
		ok(t, err)
		stores[site] = s
	}
	table := NewMemory()
	for i := range 60 {
		owner := fmt.Sprint("owner", i)
		if i%3 != 0 {
			ok(t, stores["a"].Create(t.Context(), owner, objectstore.Mark{}))
		}
		if i%10 == 0 {
			ok(t, stores["b"].Create(t.Context(), owner, objectstore.Mark{}))
		}
		if i%2 == 0 {
			_, err := table.Set(t.Context(), owner, at("a", 1), 0)
			ok(t, err)
		}
	}
	was := passOwners
	defer func() { passOwners = was }()
	want, err := Verify(t.Context(), table, stores, nil)
	ok(t, err)
	if want.Owners != 50 || len(want.Problems) == 0 {
		t.Fatalf("%+v", want)
	}
	for _, n := range []int{1, 7, 30} {
		passOwners = n
		got, err := Verify(t.Context(), table, stores, nil)
		ok(t, err)
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%d at a time:\n%+v\nexpected\n%+v", n, got, want)
		}
	}
}
