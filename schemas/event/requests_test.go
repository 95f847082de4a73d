package event_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"penstock/schemas/event"
)

func TestRowsComeBackAsAppended(t *testing.T) {
	var b event.Requests
	for range 2 { // A batch that is reset forgets all it had.
		b.Reset()
		var rows []event.Request
		for i := range 20 {
			q := event.NewRequest(int64(i))
			if i%2 == 0 {
				q.Owner, q.User, q.ID, q.Lat, q.Lon, q.Status = fmt.Sprint("o", i%3), "u", "i", 1, 2, 200
			}
			rows = append(rows, q)
			b.Append(&q)
		}
		for i := range rows {
			if !sameRow(b.Row(i), rows[i]) {
				t.Fatalf("row %d: got\n%+v\nexpected\n%+v", i, b.Row(i), rows[i])
			}
			if b.HasPlace(i) != rows[i].HasPlace() || b.HasPlace(i) != (i%2 == 0) {
				t.Fatalf("row %d: has a place: %v", i, b.HasPlace(i))
			}
		}
		if !slices.Equal(b.Owner.Values, []string{"o0", "o2", "o1"}) {
			t.Fatalf("owners %q", b.Owner.Values)
		}
	}
}

func TestSizeFollowsFromTheRowsAlone(t *testing.T) {
	// Cuts by size must fall in the same places each time, whatever the memory
	// held before.
	fresh, used := new(event.Requests), fullBatch(500)
	used.Reset()
	rows := fullBatch(100)
	for i := range 100 {
		q := rows.Row(i)
		fresh.Append(&q)
		used.Append(&q)
		if fresh.Size() != used.Size() || fresh.Size() == 0 {
			t.Fatalf("row %d: %d and %d", i, fresh.Size(), used.Size())
		}
	}
}

func TestAppendingKnownValuesAllocatesNothing(t *testing.T) {
	b := fullBatch(200)
	rows := make([]event.Request, 200)
	for i := range rows {
		rows[i] = b.Row(i)
	}
	if n := testing.AllocsPerRun(20, func() {
		b.Reset()
		for i := range rows {
			b.Append(&rows[i])
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestADictionaryIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var d event.Dict
		for i := range rapid.IntRange(0, 40).Draw(t, "before") { // What was before a Reset is forgotten.
			d.Append(fmt.Sprint(i))
		}
		d.Reset()
		most := rapid.SampledFrom([]int{4, 100}).Draw(t, "most")
		values := rapid.SliceOf(rapid.Custom(func(t *rapid.T) string {
			return strings.TrimLeft(fmt.Sprint(rapid.IntRange(0, most).Draw(t, "value")), "0")
		})).Draw(t, "values")
		for i, v := range values {
			d.Append(v)
			if i == 3 {
				// As a decoder leaves it: without an index.
				d.Set(slices.Clone(d.Codes), slices.Clone(d.Values))
			}
		}
		seen := map[string]bool{}
		for i, v := range values {
			if got := d.At(i); got != v {
				t.Fatalf("row %d: got %q, expected %q", i, got, v)
			}
			if (d.Codes[i] == event.NullCode) != (v == "") {
				t.Fatalf("row %d: code %d of %q", i, d.Codes[i], v)
			}
			seen[v] = true
		}
		delete(seen, "")
		if d.Len() != len(values) || len(d.Values) != len(seen) {
			t.Fatalf("%d rows of %q", d.Len(), d.Values)
		}
	})
}

func TestRowsThatNoBatchMayHold(t *testing.T) {
	good := event.NewRequest(1)
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("é", event.MaxID/2)
	good.Owner = long
	if err := good.Check(); err != nil {
		t.Fatalf("%d bytes: %v", len(long), err)
	}
	nan := float32(math.NaN())
	for expected, spoil := range map[string]func(*event.Request){
		`field time: got "9223372036854775807", expected a time between 1900 and 2200 in µs`:                func(r *event.Request) { r.Time = math.MaxInt64 },
		`field bytes: got "-1", expected 0 to 137438953472`:                                                 func(r *event.Request) { r.Bytes = -1 },
		`field bytes: got "9223372036854775807", expected 0 to 137438953472`:                                func(r *event.Request) { r.Bytes = math.MaxInt64 },
		`field bytes: got "137438953473", expected 0 to 137438953472`:                                       func(r *event.Request) { r.Bytes = event.MaxRequestBytes + 1 },
		`field wait_us: got "3162240000000001", expected microseconds, at most 100 years either way`:        func(r *event.Request) { r.Wait = event.MaxDelay + 1 },
		`field service_us: got "9223372036854775807", expected microseconds, at most 100 years either way`:  func(r *event.Request) { r.Service = math.MaxInt64 },
		`field network_us: got "-3162240000000001", expected microseconds, at most 100 years either way`:    func(r *event.Request) { r.Network = -event.MaxDelay - 1 },
		`field overdue_us: got "-9223372036854775807", expected microseconds, at most 100 years either way`: func(r *event.Request) { r.Overdue = math.MinInt64 + 1 },
		`field mark: got "3", expected 0, 1 or 2`:                                                           func(r *event.Request) { r.Mark = 3 },
		`field op: got "2", expected read or write`:                                                         func(r *event.Request) { r.Op = 2 },
		`field lat: got "90.5", expected degrees from -90 to 90`:                                            func(r *event.Request) { r.Lat, r.Lon = 90.5, 0 },
		`field lon: got "-181", expected degrees from -180 to 180`:                                          func(r *event.Request) { r.Lat, r.Lon = 0, -181 },
		`field lat: got "NaN", expected both lat and lon, or neither`:                                       func(r *event.Request) { r.Lat, r.Lon = nan, 5 },
		`field status: got "65536", expected 0 to 65535`:                                                    func(r *event.Request) { r.Status = 65536 },
		`field owner: got "` + long[:120] + `", expected at most 1024 bytes (got 1025)`:                     func(r *event.Request) { r.Owner = long + "x" },
		`field to_server: got "a\xff", expected UTF-8`:                                                      func(r *event.Request) { r.ToServer = "a\xff" },
		`field id: got "` + strings.Repeat("x", 60) + `", expected at most 1024 bytes (got 5000)`:           func(r *event.Request) { r.ID = strings.Repeat("x", 5000) },
	} {
		r := event.NewRequest(1)
		spoil(&r)
		err := r.Check()
		var f *event.FieldError
		if fmt.Sprint(err) != expected || !errors.Is(err, event.ErrInvalid) || !errors.As(err, &f) {
			t.Errorf("got %v\nexpected %s", err, expected)
		}
	}
}

func TestErrorsAreNoneAnd5xx(t *testing.T) {
	for status, expected := range map[int32]bool{event.NullStatus: false, 0: true, 200: false, 404: false, 499: false, 500: true, 501: false, 503: true, 505: false, 508: true} {
		r := event.NewRequest(1)
		if r.Status = status; r.IsError() != expected {
			t.Errorf("status %d: error %v", status, r.IsError())
		}
	}
	if event.Read.String() != "read" || event.Write.String() != "write" {
		t.Error("the names of operations are those of the column op")
	}
}

func fullGauges(rows int) *event.Gauges {
	b := new(event.Gauges)
	for i := range rows {
		g := event.NewGauge(int64(i))
		g.Site = fmt.Sprint("site-", i%3)
		if i%4 > 0 {
			g.Server, g.Queued, g.InService, g.QueuedStatic, g.QueuedDynamic = fmt.Sprint("s", i%5), int64(i), 0, 1, 2
			g.PotentialOverdue, g.Backlog = int64(i)<<30, 7
		}
		b.Append(&g)
	}
	return b
}

func TestGaugesComeBack(t *testing.T) {
	var e event.GaugeEncoder
	var d event.GaugeDecoder
	var got event.Gauges
	for _, rows := range []int{0, 1, 9, event.MaxRows, 4} {
		in := fullGauges(rows)
		body, err := e.Encode([]byte("x"), in)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Decode(body[1:], event.EncodingS2, &got); err != nil {
			t.Fatal(err)
		}
		if got.Len() != rows {
			t.Fatalf("%d rows, expected %d", got.Len(), rows)
		}
		for i := range rows {
			if got.Row(i) != in.Row(i) {
				t.Fatalf("row %d: got %+v\nexpected %+v", i, got.Row(i), in.Row(i))
			}
		}
	}
	in := fullGauges(3)
	in.Reset()
	if in.Len() != 0 || in.Site.Len() != 0 || len(in.Backlog) != 0 {
		t.Error("Reset left rows")
	}
}

func TestUnusableGauges(t *testing.T) {
	good := event.NewGauge(1)
	good.Site = "s"
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for expected, spoil := range map[string]func(*event.Gauge){
		`field time: got "-9223372036854775808", expected a time between 1900 and 2200 in µs`:       func(g *event.Gauge) { g.Time = math.MinInt64 },
		`field site: got "", expected a site`:                                                       func(g *event.Gauge) { g.Site = "" },
		`field server: got "\xff", expected UTF-8`:                                                  func(g *event.Gauge) { g.Server = "\xff" },
		`field queued_dynamic: got "-2", expected 0 or more`:                                        func(g *event.Gauge) { g.QueuedDynamic = -2 },
		`field backlog: got "-1", expected 0 or more`:                                               func(g *event.Gauge) { g.Backlog = -1 },
		`field site: got "` + strings.Repeat("s", 60) + `", expected at most 1024 bytes (got 1025)`: func(g *event.Gauge) { g.Site = strings.Repeat("s", 1025) },
	} {
		g := good
		spoil(&g)
		if err := g.Check(); fmt.Sprint(err) != expected || !errors.Is(err, event.ErrInvalid) {
			t.Errorf("got %v\nexpected %s", err, expected)
		}
	}
	var e event.GaugeEncoder
	noSite := fullGauges(2)
	noSite.Site.Codes[1] = event.NullCode
	short := fullGauges(2)
	short.Backlog = short.Backlog[:1]
	for expected, b := range map[string]*event.Gauges{
		"column site: 1 rows are absent, expected none: invalid request": noSite,
		"column backlog: 1 rows, expected 2: invalid request":            short,
		"batch of 8193 rows, expected at most 8192: invalid request":     fullGauges(event.MaxRows + 1),
	} {
		if _, err := e.Encode(nil, b); fmt.Sprint(err) != expected || !errors.Is(err, event.ErrInvalid) {
			t.Errorf("got %v\nexpected %s", err, expected)
		}
	}
	// A batch of requests is none of gauges.
	var re event.Encoder
	body, err := re.Encode(nil, fullBatch(3))
	if err != nil {
		t.Fatal(err)
	}
	var d event.GaugeDecoder
	if err := d.Decode(body, event.EncodingS2, new(event.Gauges)); err == nil || !strings.HasPrefix(err.Error(), "column site: missing, expected dictionary<int32, utf8>: ") {
		t.Errorf("got %v", err)
	}
	negative := fullGauges(2)
	negative.Queued[1] = -4
	if body, err = e.Encode(nil, negative); err != nil {
		t.Fatal(err)
	}
	if err := d.Decode(body, event.EncodingS2, new(event.Gauges)); err == nil || !strings.HasPrefix(err.Error(), "column queued: row 1: got -4, expected 0 or more: ") {
		t.Errorf("got %v", err)
	}
}
