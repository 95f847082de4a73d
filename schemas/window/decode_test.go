package window_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"

	"penstock/schemas/columnar"
	"penstock/schemas/event"
	"penstock/schemas/window"
)

// pane returns the columns of a good pane of delay with two rows.
func pane() []columnar.Column {
	key := func(name string, codes []int32, values ...string) columnar.Column {
		return columnar.Dictionary(name, codes, values, new(columnar.TextMemory))
	}
	return []columnar.Column{
		columnar.Fixed("window_start", columnar.Time, []int64{0, 10_000_000}),
		key("from_component", []int32{0, 0}, "a"), key("from_site", []int32{-1, -1}),
		key("to_component", []int32{0, 1}, "b", "c"), key("to_site", []int32{1, 0}, "e", "w"),
		columnar.Fixed("requests", columnar.Int64, []int64{1, 2}), columnar.Fixed("errors", columnar.Int64, []int64{0, 0}),
		columnar.Fixed("service_us", columnar.Int64, []int64{5, 5}),
		bins("service", []int32{0, 2, 2}, 3, 9), counts("service", []int32{0, 2, 2}, 1, 1),
		columnar.Fixed("network_us", columnar.Int64, []int64{5, 5}),
		bins("network", []int32{0, 0, 1}, 7), counts("network", []int32{0, 0, 1}, 2),
	}
}

func bins(name string, offsets []int32, values ...uint16) columnar.Column {
	c, child := columnar.Lists(name+"_bins", columnar.ListUint16, offsets), columnar.Fixed("item", columnar.Uint16, values)
	c.Child = &child
	return c
}

func counts(name string, offsets []int32, values ...int64) columnar.Column {
	c, child := columnar.Lists(name+"_counts", columnar.ListInt64, offsets), columnar.Fixed("item", columnar.Int64, values)
	c.Child = &child
	return c
}

func body(t *testing.T, columns []columnar.Column, rollup string) []byte {
	t.Helper()
	var w columnar.Writer
	b, err := w.Write(nil, columns, columns[0].Len, map[string]string{"rollup": rollup})
	if err != nil {
		t.Fatal(err)
	}
	return s2.Encode(nil, b)
}

func TestUnusablePanesSayWhatIsWrong(t *testing.T) {
	key := func(name string, codes []int32, values ...string) columnar.Column {
		return columnar.Dictionary(name, codes, values, new(columnar.TextMemory))
	}
	var valid []byte
	if _, err := window.DecodeTable(body(t, pane(), "delay")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		column   columnar.Column
		expected string
	}{
		{columnar.Fixed("window_start", columnar.Int64, []int64{0, 1}), "column window_start: got int64, expected timestamp[us, UTC]"},
		{columnar.Fixed("window_start", columnar.Time, []int64{0, 10_000_001}), "column window_start: row 1: got 10000001, expected a multiple of 10s between 1900 and 2200"},
		{columnar.Fixed("window_start", columnar.Time, []int64{0, math.MaxInt64 / 10_000_000 * 10_000_000}), "column window_start: row 1: got 9223372036850000000, expected"},
		{columnar.Fixed("window_start", columnar.Time, []int64{20_000_000, 10_000_000}), "row 1 is not after row 0, expected rows sorted by window and key, each once"},
		{key("from_component", []int32{0, 1}, "b", "a"), `column from_component: value 1, "a", is not after the one before`},
		{key("from_component", []int32{0, 0}, "a", "a"), `column from_component: value 1, "a", is not after the one before`},
		{key("from_component", []int32{0, 0}, ""), `column from_component: value 0, "", is not after the one before`},
		{key("from_component", []int32{0, 5}, "a"), `column from_component: code 5, expected one below 1`},
		{key("from_component", []int32{0, 0}, strings.Repeat("x", event.MaxID+1)), `column from_component: row 0 has 1025 bytes, expected at most 1024`},
		{columnar.Fixed("errors", columnar.Int32, []int32{0, 0}), "column errors: got int32, expected int64"},
		{columnar.Nullable("errors", columnar.Int64, []int64{0, 1}, 0, &valid), "column errors: 1 rows are absent, expected none"},
		{bins("service", []int32{0, 2, 2}, 9, 3), "column service: row 0, expected ascending bins below 7296 with positive counts"},
		{bins("service", []int32{0, 2, 2}, 3, 60_000), "column service: row 0, expected ascending bins below 7296 with positive counts"},
		{counts("service", []int32{0, 2, 2}, 1, 0), "column service: row 0, expected ascending bins below 7296 with positive counts"},
		{counts("service", []int32{0, 1, 2}, 1, 1), "column service: row 0 has 2 bins and 1 counts"},
		{columnar.Fixed("service_bins", columnar.Uint16, []uint16{1, 2}), "column service_bins: got uint16, expected list<uint16>"},
	} {
		columns := pane()
		columns[slices.IndexFunc(columns, func(o columnar.Column) bool { return o.Name == c.column.Name })] = c.column
		got, err := window.DecodeTable(body(t, columns, "delay"))
		if err == nil || !strings.HasPrefix(err.Error(), "pane: "+c.expected) || !errors.Is(err, window.ErrUndecodable) || got != nil {
			t.Errorf("got %v\nexpected %s", err, c.expected)
		}
	}
	for i := range pane() {
		name := pane()[i].Name
		_, err := window.DecodeTable(body(t, slices.Delete(pane(), i, i+1), "delay"))
		if err == nil || !strings.HasPrefix(err.Error(), "pane: column "+name+": missing, expected ") {
			t.Errorf("without %s: got %v", name, err)
		}
	}
	for expected, b := range map[string][]byte{
		`pane: metadata rollup: got "later", expected the name of a rollup`: body(t, pane(), "later"),
		"pane: body is not s2": []byte("hello, world"),
		"pane: body of 16777217 bytes, expected at most 16777216": s2.Encode(nil, make([]byte, window.MaxDecoded+1)),
		"pane: stream ends before its record batch":               s2.Encode(nil, nil),
	} {
		if got, err := window.DecodeTable(b); err == nil || !strings.HasPrefix(err.Error(), expected) || !errors.Is(err, window.ErrUndecodable) || got != nil {
			t.Errorf("got %v\nexpected %s", err, expected)
		}
	}
}

// A decoded histogram may be added to without a change of its neighbours.
func TestHistogramsOfAPaneAreApart(t *testing.T) {
	got, err := window.DecodeTable(body(t, pane(), "delay"))
	if err != nil {
		t.Fatal(err)
	}
	second := window.Bins{Index: slices.Clone(got.HistColumn("network")[1].Index), Counts: slices.Clone(got.HistColumn("network")[1].Counts)}
	got.HistColumn("network")[0].Add(100, 3)
	if h := got.HistColumn("network")[1]; !slices.Equal(h.Index, second.Index) || !slices.Equal(h.Counts, second.Counts) {
		t.Errorf("got %v, expected %v", h, second)
	}
}

func TestATableTooLargeIsNotEncoded(t *testing.T) {
	big := window.NewTable(window.Interactions)
	for i := range window.MaxRows + 1 {
		big.Append(int64(i)*3_600_000_000, []string{"", ""}, []int64{1})
	}
	got, err := big.Encode([]byte("dst"))
	if err == nil || err.Error() != "pane of interactions with 1048577 rows, expected at most 1048576" || string(got) != "dst" {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
	if parts := big.Split(64 << 20); len(parts) < 2 {
		t.Errorf("%d parts", len(parts))
	}
}

func TestWindowsAreAligned(t *testing.T) {
	const hour = int64(3_600_000_000)
	w := window.Traffic.Width
	for _, c := range []struct{ time, start, ceil int64 }{
		{0, 0, 0}, {1, 0, hour}, {hour - 1, 0, hour}, {hour, hour, hour}, {-1, -hour, 0}, {-hour, -hour, -hour}, {-hour - 1, -2 * hour, -hour},
	} {
		if s, e := window.Start(c.time, w), window.Ceil(c.time, w); s != c.start || e != c.ceil {
			t.Errorf("%d: from %d, rounded up %d; expected %d, %d", c.time, s, e, c.start, c.ceil)
		}
	}
	for _, g := range window.Groups {
		for _, r := range window.Of(g) {
			if r.Group != g || window.Named(r.Name) != r || window.Start(0, r.Width) != 0 {
				t.Errorf("rollup %+v", r)
			}
		}
	}
	if window.Named("nothing") != nil {
		t.Error("a rollup of no name")
	}
}

func TestTheAccountHolds(t *testing.T) {
	a := window.Account{Received: 10, Counted: 6, Late: 1, Duplicate: 1, Malformed: 1, Quarantined: 1, LostBatches: 3}
	if !a.Holds() {
		t.Error("it holds")
	}
	a.Add(a)
	if expected := (window.Account{Received: 20, Counted: 12, Late: 2, Duplicate: 2, Malformed: 2, Quarantined: 2, LostBatches: 6}); a != expected || !a.Holds() {
		t.Errorf("got %+v", a)
	}
	if a.Received++; a.Holds() {
		t.Error("a row is in no account")
	}
}
