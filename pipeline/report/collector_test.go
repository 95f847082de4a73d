package report

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"penstock/schemas/control"
	"penstock/schemas/event"
	"penstock/schemas/sphere"
	"penstock/schemas/window"
)

// Three clouds as in the paper; the users sit on top of them, so that the
// delay to the nearest is 5 ms and to another one is known.
var clouds = []Site{
	{Name: "east", Lat: 37.3719, Lon: -79.8164, Capacity: 3000, Egress: 1e6},
	{Name: "central", Lat: 29.4167, Lon: -98.5, Capacity: 3000},
	{Name: "west", Lat: 37.783, Lon: -122.417, Capacity: 3000},
}

func row(at time.Duration, user, owner, site string, place int, bytes int64, op event.Op) *event.Request {
	r := event.NewRequest(at.Microseconds())
	r.User, r.Owner, r.ToSite, r.Bytes, r.Op = user, owner, site, bytes, op
	if place >= 0 {
		r.Lat, r.Lon = float32(clouds[place].Lat), float32(clouds[place].Lon)
	}
	return &r
}

func TestCollectorComparesTheSameRows(t *testing.T) {
	c := NewCollector(clouds, time.Hour)
	// Ann lives in the east and her data is there; Bob reads it from the west.
	c.Row(row(0, "ann", "ann", "east", 0, 1000, event.Write), "")
	c.Row(row(time.Minute, "bob", "ann", "east", 2, 4000, event.Read), "")
	// A row without a place, one without a site, a late and a future one.
	c.Row(row(2*time.Minute, "cat", "ann", "east", -1, 10, event.Read), "")
	c.Row(row(3*time.Minute, "bob", "ann", "", 2, 20, event.Read), "")
	late := row(time.Minute, "bob", "ann", "east", 2, 1e9, event.Read)
	late.Mark = event.Late
	c.Row(late, "")
	c.Window(time.Hour.Microseconds(), &control.Decision{
		Case: "overhead-first", Mode: control.Act, Reasons: []control.Reason{{Code: "OverCapacity", Count: 2}, {Code: "NoRoom"}},
	}, []control.Move{{Owner: "ann", From: "east", To: "west", Version: 1}},
		[]control.Outcome{{Owner: "ann", Status: control.Done, Bytes: 2000}})
	// In the next hour Ann is in the west: distance-only follows an hour late.
	c.Row(row(time.Hour, "ann", "ann", "west", 2, 500, event.Write), "")
	c.Window(2*time.Hour.Microseconds(), nil, nil, nil)
	c.Row(row(2*time.Hour, "ann", "ann", "west", 2, 500, event.Write), "")

	var r Report
	c.Fill(&r)
	ew := sphere.RTT(sphere.Km(clouds[0].Lat, clouds[0].Lon, clouds[2].Lat, clouds[2].Lon))
	near := func(name string, figure Figure, want float64) {
		t.Helper()
		got := float64(figure)
		if !(math.Abs(got-want) <= 0.01) {
			t.Errorf("%s: %.3f, expected %.3f", name, got, want)
		}
	}
	near("mean as served", r.Latency.Mean, (5+ew+5+5)/4)
	near("mean of reads", r.LatencyR.Mean, ew)
	near("mean nearest", r.Baselines["nearest-replica"].Latency.Mean, 5)
	near("mean distance-only", r.Baselines["distance-only"].Latency.Mean, (5+ew+ew+5)/4)
	if r.Latency.Requests != 4 || r.Latency.Unlocated != 1 || c.unserved != 1 {
		t.Errorf("requests %d, unlocated %d, unserved %d; expected 4, 1, 1", r.Latency.Requests, r.Latency.Unlocated, c.unserved)
	}
	if len(r.Windows) != 3 || r.Windows[0].Traffic["east"] != 5010 || r.Windows[0].Case != "overhead-first" {
		t.Errorf("windows: %+v", r.Windows)
	}
	if r.Moves.Count != 1 || r.Moves.Done != 1 || r.Moves.Bytes != 2000 || r.Moves.EgressUSD != 2 || r.Moves.Windows != 1 {
		t.Errorf("moves: %+v", r.Moves)
	}
	// East served 5,010 of 3,000 in the first hour; two other site windows had
	// traffic within capacity.
	near("execution delay", r.Execution.Mean, (2010.0/5010)/3)
	if r.Execution.OverWindows != 1 || r.Sites[0].OverWindows != 1 || r.Sites[0].Busiest != 5010 {
		t.Errorf("over capacity: %+v, %+v", r.Execution, r.Sites[0])
	}
	// Under nearest the east has 1,000 and the west 4,020 in the first hour.
	near("execution delay nearest", r.Baselines["nearest-replica"].Execution.Mean, (1020.0/4020)/4)
	if r.Reasons["OverCapacity"] != 2 || r.Reasons["NoRoom"] != 1 {
		t.Errorf("reasons: %v", r.Reasons)
	}
}

func TestPageAndSummarySayWhatCounts(t *testing.T) {
	c := NewCollector(clouds, time.Hour)
	c.Row(row(0, "ann", "<script>", "east", 0, 5000, event.Write), "")
	c.Window(time.Hour.Microseconds(), &control.Decision{Case: "minimal", Reasons: []control.Reason{{Code: "WithinCapacity"}}},
		[]control.Move{{Owner: "<script>", From: "east", To: "west"}}, nil)
	r := Report{Run: "run-1", Account: window.Account{Received: 3, Counted: 1, Malformed: 1}, Stores: &Stores{Owners: 1, Faults: []string{"owner <b>x</b>"}}}
	c.Fill(&r)
	html, err := r.HTML()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"DOES NOT HOLD", "data:image/svg&#43;xml;base64,", "distance-only", "minimal", "owner &lt;b&gt;x"} {
		if !bytes.Contains(html, []byte(want)) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if bytes.Contains(html, []byte("http://")) || bytes.Contains(html, []byte("src=\"//")) {
		t.Error("the page loads something from elsewhere")
	}
	var b strings.Builder
	if err := r.Summary(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"!5.0 KB", "DOES NOT HOLD", "WithinCapacity 1", "NOT so for 1"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the summary lacks %q:\n%s", want, b.String())
		}
	}
}

func TestDelaysQuantiles(t *testing.T) {
	var d Delays
	for us := int64(1); us <= 100_000; us++ {
		d.Add(us, 1)
	}
	s := d.Summary(0)
	if math.Abs(float64(s.P50)-50) > 0.4 || math.Abs(float64(s.P99)-99) > 0.8 || math.Abs(float64(s.Mean)-50.0005) > 0.001 {
		t.Errorf("%+v", s)
	}
	var none Delays
	s = none.Summary(7)
	if b, err := json.Marshal(s); err != nil || string(b) != `{"requests":0,"mean":null,"p50":null,"p99":null,"unlocated":7}` {
		t.Errorf("no samples: %s, %v", b, err)
	}
	var back Delay
	if err := json.Unmarshal([]byte(`{"requests":0,"mean":null,"p50":1.5}`), &back); err != nil || back.Mean.Known() || back.P50 != 1.5 {
		t.Errorf("read back: %+v, %v", back, err)
	}
	if none.Summary(7).Mean.Text(2) != "–" {
		t.Error("an unknown mean is printed as a number")
	}
}

func TestCollectorDoesNotAllocatePerRow(t *testing.T) {
	c := NewCollector(clouds, time.Hour)
	a, b := row(0, "ann", "bob", "east", 0, 10, event.Read), row(0, "bob", "ann", "west", 2, 10, event.Write)
	c.Row(a, "")
	c.Row(b, "")
	if n := testing.AllocsPerRun(1000, func() { c.Row(a, ""); c.Row(b, "") }); n > 0 {
		t.Errorf("%.1f allocations for two rows", n)
	}
}
