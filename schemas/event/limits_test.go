package event_test

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"penstock/schemas/event"
)

// around draws numbers at and beside limits, and any others.
func around(limits ...int64) *rapid.Generator[int64] {
	near := rapid.Custom(func(t *rapid.T) int64 {
		return rapid.SampledFrom(limits).Draw(t, "limit") + rapid.Int64Range(-1, 1).Draw(t, "beside")
	})
	return rapid.OneOf(near, rapid.SampledFrom(limits), rapid.Int64())
}

// limitRow draws rows at and beyond the limits of every column.
func limitRow() *rapid.Generator[event.Request] {
	delay := rapid.OneOf(rapid.Just(int64(event.NullInt)), rapid.Int64Range(-9, 1e6), around(event.MaxDelay, -event.MaxDelay, math.MaxInt64, event.NullInt))
	degrees := func(most float32) *rapid.Generator[float32] {
		return rapid.OneOf(rapid.SampledFrom([]float32{most, -most, float32(math.NaN()), float32(math.Inf(1)), most + 1}), rapid.Float32Range(-most, most))
	}
	text := rapid.SampledFrom([]string{"", "a", "-", "null", " ", "\x00", "é", "\xff", strings.Repeat("x", event.MaxID), strings.Repeat("x", event.MaxID+1)})
	good := rapid.SampledFrom([]string{"", "a", "é", strings.Repeat("y", event.MaxID)})
	return rapid.Custom(func(t *rapid.T) event.Request {
		// Most columns of most rows are within the limits, so that many rows are.
		odd := rapid.IntRange(0, 12).Draw(t, "odd")
		r := event.NewRequest(rapid.SampledFrom([]int64{event.MinTime, 0, event.MaxTime}).Draw(t, "time"))
		r.Mark, r.Op = event.Timing(rapid.IntRange(0, 2).Draw(t, "mark")), event.Op(rapid.IntRange(0, 1).Draw(t, "op"))
		r.N, r.K = rapid.Uint8().Draw(t, "n"), rapid.Uint8().Draw(t, "k")
		r.Bytes = rapid.SampledFrom([]int64{0, 1, event.MaxRequestBytes}).Draw(t, "bytes")
		r.Status = rapid.SampledFrom([]int32{event.NullStatus, 0, 200, math.MaxUint16}).Draw(t, "status")
		switch odd {
		case 0:
			r.Time = around(event.MinTime, event.MaxTime).Draw(t, "any time")
		case 1:
			r.Mark, r.Op = event.Timing(rapid.Uint8().Draw(t, "any mark")), event.Op(rapid.IntRange(0, 3).Draw(t, "any op"))
		case 2:
			r.Bytes = around(0, event.MaxRequestBytes, math.MaxInt64).Draw(t, "any bytes")
		case 3:
			r.Status = int32(around(event.NullStatus, math.MaxUint16).Draw(t, "any status"))
		case 4:
			r.Lat, r.Lon = degrees(90).Draw(t, "lat"), degrees(180).Draw(t, "lon")
		case 5, 6:
			for _, d := range []*int64{&r.Wait, &r.Service, &r.Network, &r.Overdue} {
				*d = delay.Draw(t, "delay")
			}
		case 7:
			r.Trace[rapid.IntRange(0, 15).Draw(t, "at")] = rapid.Byte().Draw(t, "trace")
		}
		for _, s := range []*string{
			&r.ID, &r.User, &r.Owner, &r.FromComponent, &r.FromSite, &r.ToComponent, &r.ToSite, &r.ToServer, &r.Class, &r.Outcome,
		} {
			if *s = good.Draw(t, "text"); odd == 8 {
				*s = text.Draw(t, "any text")
			}
		}
		return r
	})
}

// One row that a check lets pass and a decoder refuses costs a whole batch.
func TestWhatCheckLetsPassIsDecoded(t *testing.T) {
	var e event.Encoder
	var d event.Decoder
	passed, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		var in, got event.Requests
		for _, r := range rapid.SliceOfN(limitRow(), 1, 6).Draw(t, "rows") {
			if r.Check() != nil {
				refused++
				continue
			}
			passed++
			in.Append(&r)
		}
		body, err := e.Encode(nil, &in)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Decode(body, event.EncodingS2, &got); err != nil {
			t.Fatal(err)
		}
		if got.Len() != in.Len() {
			t.Fatalf("%d rows, expected %d", got.Len(), in.Len())
		}
		for i := range got.Len() {
			if g, w := got.Row(i), in.Row(i); !sameRow(g, w) || g.Check() != nil {
				t.Fatalf("row %d: got %+v\nexpected %+v", i, g, w)
			}
		}
	})
	if passed < 50 || refused < 10 {
		t.Errorf("%d rows passed and %d were refused: the test draws too few of one", passed, refused)
	}
}

// And what a decoder lets pass, a check would have: the limits are the same.
func TestWhatCheckRefusesIsNotDecoded(t *testing.T) {
	var e event.Encoder
	var d event.Decoder
	for _, spoil := range []func(*event.Request){
		func(r *event.Request) { r.Bytes = event.MaxRequestBytes + 1 },
		func(r *event.Request) { r.Bytes = -1 },
		func(r *event.Request) { r.Wait = event.MaxDelay + 1 },
		func(r *event.Request) { r.Service = -event.MaxDelay - 1 },
		func(r *event.Request) { r.Network = math.MaxInt64 },
		func(r *event.Request) { r.Overdue = event.NullInt + 1 },
		func(r *event.Request) { r.Time = event.MaxTime + 1 },
		func(r *event.Request) { r.Mark = event.Future + 1 },
	} {
		r := event.NewRequest(1)
		spoil(&r)
		var in, got event.Requests
		in.Append(&r)
		body, err := e.Encode(nil, &in)
		if err != nil {
			t.Fatal(err)
		}
		if r.Check() == nil || d.Decode(body, event.EncodingS2, &got) == nil {
			t.Errorf("%+v was let pass", r)
		}
	}
}

func TestSumsOfTheGreatestRowsFit(t *testing.T) {
	const batches = 1 << 12
	if most := int64(math.MaxInt64) / event.MaxRows / batches; event.MaxRequestBytes > most {
		t.Errorf("%d bytes a row, expected at most %d", int64(event.MaxRequestBytes), most)
	}
	// Arrival = Time − Wait − Service − Network.
	if int64(event.MinTime) < math.MinInt64+3*event.MaxDelay || int64(event.MaxTime) > math.MaxInt64-3*event.MaxDelay {
		t.Error("the arrival of a row may wrap around")
	}
}
