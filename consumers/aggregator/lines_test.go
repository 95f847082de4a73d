package aggregator

import (
	"fmt"
	"testing"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/schemas/event"
	"penstock/schemas/subject"
	"penstock/schemas/window"
)

// TestBatchesOfLines: a publisher without Arrow is added up with the others, and
// a batch of its that has one bad line goes to REJECTS as a whole, with the line.
func TestBatchesOfLines(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t, func(o *bus.Options) { o.Partitions = 1 })
	c := bustest.Client(t, b)
	lines := func(seq uint64, rows int, body string) bus.Msg {
		h := event.Header{Schema: event.RequestSchema, Encoding: event.EncodingJSONL, Run: "L", Seq: seq, Rows: rows}
		return bus.Msg{Subject: subject.Events(0, "web-2"), Header: h.Fields(), Data: []byte(body)}
	}
	const good = `{"time":5,"op":"read","bytes":100,"user":"ann","owner":"bob","to_site":"east"}` + "\n"
	bad := lines(2, 2, good+`{"time":5,"op":"read","bytes":"many"}`)
	publish(t, c,
		batch{run: "R", seq: 1, rows: []event.Request{rowAt(5_000_000, "ann", "bob", "east")}}.message(t),
		lines(1, 2, good+good), bad, lines(3, 1, good),
		mark(event.End, "R", 2*hour, 1), mark(event.End, "L", 2*hour, 3))
	start(t, Options{Client: bustest.Client(t, b), Group: window.Owners, Advice: Always{}})
	got := outputs(t, c, window.Owners, 0, watermarkAt(2*hour))
	if want := (window.Account{Received: 6, Counted: 4, Malformed: 2}); got.commit.Total != want {
		t.Errorf("account %+v, want %+v", got.commit.Total, want)
	}
	if r := column(got.tables["traffic"], "requests"); r["0 bob east"] != 4 {
		t.Errorf("traffic %v, want 4", r)
	}
	r, err := c.Read(t.Context(), subject.RejectsStream, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	m := bustest.Take(t, r, 1)[0]
	text := fmt.Sprintf("%s seq %s field %s expected %s", m.Subject, m.Header["Penstock-Events-Seq"][0],
		m.Header["Penstock-Field"][0], m.Header["Penstock-Expected"][0])
	want := "rejects.undecodable.web-2 seq 3 field bytes expected a whole number from 0 to 137438953472"
	if text != want || string(m.Data) != string(bad.Data) {
		t.Errorf("reject %s\nwant %s", text, want)
	}
}
