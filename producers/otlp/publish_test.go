package otlp

import (
	"testing"
	"time"

	"penstock/infra/bus/bustest"
	"penstock/infra/publisher"
	"penstock/schemas/event"
	"penstock/schemas/subject"
)

// Calls reach EVENTS through the publisher, in time although they are published a
// window after they ended.
func TestCallsOnTheBus(t *testing.T) {
	b := bustest.Start(t)
	o := Options{Window: 100 * time.Millisecond}
	pub, err := publisher.New(testContext(t), publisher.Options{
		Client: bustest.Client(t, b), Entry: "otlp-1", MaxAge: 20 * time.Millisecond, SpoolDir: t.TempDir(), Disorder: o.Delay(),
	})
	if err != nil {
		t.Fatal(err)
	}
	w := start(t, func(o *Options) { o.Publisher, o.Window = pub, 100*time.Millisecond })
	now, client := time.Now(), w.client(t)
	const calls = 100
	for n := range byte(calls) {
		asked, served := spanOf(n+1, 1, 0, clientKind, 0, 5*ms), spanOf(n+1, 2, 1, serverKind, ms, 4*ms)
		shift := uint64(now.UnixNano()) - asked.StartTimeUnixNano
		asked.StartTimeUnixNano += shift
		asked.EndTimeUnixNano += shift
		served.StartTimeUnixNano += shift
		served.EndTimeUnixNano += shift
		req := requestOf("shop", "eu", asked)
		req.ResourceSpans = append(req.ResourceSpans, requestOf("cart", "us", served).ResourceSpans...)
		if _, err := client.Export(testContext(t), req); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.end(); err != nil {
		t.Fatal(err)
	}
	if err := pub.Close(testContext(t)); err != nil {
		t.Fatal(err)
	}
	reader, err := bustest.Client(t, b).Read(testContext(t), subject.EventsStream, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	seen := map[[16]byte]bool{}
	for len(seen) < calls {
		m := bustest.Take(t, reader, 1)[0]
		if event.IsMark(m.Header) {
			continue
		}
		h, err := event.ParseHeader(m.Header)
		if err != nil {
			t.Fatal(err)
		}
		var d event.Decoder
		var rows event.Requests
		if err := d.Decode(m.Data, h.Encoding, &rows); err != nil {
			t.Fatal(err)
		}
		for i := range rows.Len() {
			r := rows.Row(i)
			if r.Mark != event.InTime || r.FromComponent != "shop" || r.ToSite != "us" || r.Service != 3000 || r.Network != 2000 || seen[r.Trace] {
				t.Errorf("%+v", r)
			}
			seen[r.Trace] = true
		}
	}
}
