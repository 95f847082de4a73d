package window_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/klauspost/compress/s2"

	"github.com/apache/arrow/go/v15/arrow/ipc"

	"penstock/schemas/window"
)

// randomTable returns rows with keys from a small space, so that some repeat.
func randomTable(r *rand.Rand, u *window.Rollup, rows, keys int) *window.Table {
	t := window.NewTable(u)
	for range rows {
		start := window.Start(1_431_943_200_000_000, u.Width) + int64(r.IntN(3))*u.Width.Microseconds()
		var k []string
		for i := range u.Keys {
			if n := r.IntN(keys + 1); n == 0 {
				k = append(k, "")
			} else {
				k = append(k, fmt.Sprintf("%s-%d-é", u.Keys[i], n))
			}
		}
		var ints []int64
		var hists []window.Bins
		missing := r.IntN(5) == 0
		for _, v := range u.Values {
			x := r.Int64N(1 << 40)
			switch v.Kind {
			case window.Float32:
				x = window.FromFloat32(r.Float32() * 90)
			case window.Timestamp:
				x = start + r.Int64N(3)
			}
			if missing && v.Merging != window.Sum {
				x = window.NullInt
			}
			ints = append(ints, x)
			if v.Merging == window.Hist {
				var h window.Bins
				for range r.IntN(9) {
					h.Add(r.Int64N(1<<r.IntN(60)), 1+r.Int64N(5))
				}
				hists = append(hists, h)
			}
		}
		t.Append(start, k, ints, hists...)
	}
	return t
}

// dump prints a table by value.
func dump(t *window.Table) string {
	var b bytes.Buffer
	for i := range t.Len() {
		fmt.Fprint(&b, t.Start[i])
		for k := range t.Keys {
			fmt.Fprintf(&b, " %q", t.Keys[k].At(i))
		}
		for v := range t.Rollup.Values {
			if t.Hists[v] != nil {
				fmt.Fprint(&b, " ", t.Hists[v][i].Index, t.Hists[v][i].Counts)
			} else {
				fmt.Fprint(&b, " ", t.Ints[v][i])
			}
		}
		fmt.Fprintln(&b)
	}
	return b.String()
}

func TestAPaneComesBack(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, u := range window.Rollups {
		for _, rows := range []int{0, 1, 9, 3000} {
			in := randomTable(r, u, rows, 40)
			in.Sort()
			body, err := in.Encode([]byte("x"))
			if err != nil {
				t.Fatal(err)
			}
			out, err := window.DecodeTable(body[1:])
			if err != nil {
				t.Fatalf("%s, %d rows: %v", u.Name, rows, err)
			}
			if out.Rollup != u || dump(out) != dump(in) {
				t.Errorf("%s, %d rows: got\n%.2000s\nexpected\n%.2000s", u.Name, rows, dump(out), dump(in))
			}
		}
	}
}

func TestArrowsOwnReaderReadsAPane(t *testing.T) {
	for _, u := range window.Rollups {
		in := randomTable(rand.New(rand.NewPCG(1, 7)), u, 100, 5)
		body, err := in.Encode(nil)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := s2.Decode(nil, body)
		if err != nil {
			t.Fatal(err)
		}
		rd, err := ipc.NewReader(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		if !rd.Next() {
			t.Fatalf("%s: no record: %v", u.Name, rd.Err())
		}
		in.Sort()
		if got := rd.Record(); got.NumRows() != int64(in.Len()) || got.Schema().Field(0).Name != "window_start" {
			t.Errorf("%s: got %v", u.Name, got)
		}
		rd.Release()
	}
}

func TestEqualContentHasEqualBytes(t *testing.T) {
	for _, u := range window.Rollups {
		r := rand.New(rand.NewPCG(2, 2))
		in := randomTable(r, u, 500, 9)
		order := r.Perm(in.Len())
		other := window.NewTable(u)
		for _, i := range order {
			other.AppendRow(in, i)
		}
		a, err := in.Encode(nil)
		if err != nil {
			t.Fatal(err)
		}
		b, err := other.Encode(nil)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a, b) {
			t.Errorf("%s: other bytes for the same rows in another order", u.Name)
		}
	}
}

func TestPartsOfASplitFitAndMakeTheWhole(t *testing.T) {
	for _, u := range window.Rollups {
		in := randomTable(rand.New(rand.NewPCG(3, 3)), u, 4_000, math.MaxInt32-1)
		in.Sort()
		const most = 16 << 10
		parts := in.Split(most)
		if len(parts) < 5 {
			t.Errorf("%s: %d parts", u.Name, len(parts))
		}
		var decoded []*window.Table
		for _, p := range parts {
			body, err := p.Encode(nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(body) > most {
				t.Errorf("%s: a part of %d bytes, expected at most %d", u.Name, len(body), most)
			}
			d, err := window.DecodeTable(body)
			if err != nil {
				t.Fatal(err)
			}
			decoded = append(decoded, d)
		}
		if dump(window.Merge(u, decoded...)) != dump(in) {
			t.Errorf("%s: the parts do not make the whole", u.Name)
		}
		if one := in.Split(1 << 30); len(one) == 0 {
			t.Errorf("%s: no part", u.Name)
		}
	}
	if got := window.NewTable(window.Traffic).Split(1 << 20); len(got) != 0 {
		t.Errorf("an empty table has %d parts", len(got))
	}
}

func TestRecordHasTheColumnsOfTheMatrices(t *testing.T) {
	in := randomTable(rand.New(rand.NewPCG(1, 3)), window.Delay, 20, 3)
	in.Sort()
	rec := in.Record()
	defer rec.Release()
	var got []string
	for _, f := range rec.Schema().Fields() {
		got = append(got, f.Name+" "+f.Type.String())
	}
	expected := []string{
		"window_start timestamp[us, tz=UTC]", "window_end timestamp[us, tz=UTC]",
		"from_component utf8", "from_site utf8", "to_component utf8", "to_site utf8",
		"requests int64", "errors int64",
		"service_us int64", "service_bins list<item: uint16, nullable>", "service_counts list<item: int64, nullable>",
		"network_us int64", "network_bins list<item: uint16, nullable>", "network_counts list<item: int64, nullable>",
	}
	if !reflect.DeepEqual(got, expected) {
		t.Errorf("got %q\nexpected %q", got, expected)
	}
	if rec.NumRows() != int64(in.Len()) {
		t.Errorf("%d rows, expected %d", rec.NumRows(), in.Len())
	}
}
