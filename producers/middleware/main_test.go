package middleware

import (
	"context"
	"testing"

	"github.com/rs/zerolog"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/schemas/event"
	"penstock/schemas/subject"
)

func TestMain(m *testing.M) { bustest.Main(m) }

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), bustest.Timeout)
	t.Cleanup(cancel)
	return ctx
}

// listening is a bus that other processes reach.
func listening(t testing.TB, opts ...bustest.Option) *bus.Bus {
	t.Helper()
	return bustest.Start(t, append([]bustest.Option{func(o *bus.Options) { o.Listen = "127.0.0.1:0" }}, opts...)...)
}

// record opens a recorder that is closed with the test.
func record(t testing.TB, url string, f ...func(*Options)) *Recorder {
	t.Helper()
	o := Options{
		URL: url, Entry: "shop-1", Component: "shop", Site: "us-east", Server: "s1",
		SpoolDir: t.TempDir(), Key: []byte("a key of tests"), Logger: zerolog.Nop(),
	}
	for _, f := range f {
		f(&o)
	}
	r, err := Open(testContext(t), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		none, cancel := context.WithCancel(context.Background())
		cancel()
		_ = r.Close(none)
	})
	return r
}

// published reads n rows from EVENTS, by owner.
func published(t testing.TB, b *bus.Bus, n int) map[string]event.Request {
	t.Helper()
	c := bustest.Client(t, b)
	r, err := c.Read(testContext(t), subject.EventsStream, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	out := map[string]event.Request{}
	for rows := 0; rows < n; {
		m := bustest.Take(t, r, 1)[0]
		if event.IsMark(m.Header) {
			continue
		}
		h, err := event.ParseHeader(m.Header)
		if err != nil {
			t.Fatal(err)
		}
		var d event.Decoder
		var batch event.Requests
		if err := d.Decode(m.Data, h.Encoding, &batch); err != nil {
			t.Fatal(err)
		}
		for i := range batch.Len() {
			row := batch.Row(i)
			out[row.Owner] = row
		}
		rows += batch.Len()
	}
	return out
}
