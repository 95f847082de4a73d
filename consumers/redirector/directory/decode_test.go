package directory

import (
	"testing"
	"time"

	"penstock/schemas/control"
)

// FuzzDecode: what is read quickly is what control reads, and the usual spelling is
// read quickly.
func FuzzDecode(f *testing.F) {
	for _, l := range []control.Location{
		{Site: "us-east", Version: 7, State: control.Live, Since: t0},
		{Site: "a b", Version: 1<<64 - 1, State: control.Moving, Since: t0.Truncate(time.Second), Pinned: true},
		{Site: "é", State: control.Retired},
	} {
		b, err := control.Encode(l)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	for _, s := range []string{
		`{"site":"","version":1,"state":"live","since":"2015-05-17T10:00:00Z"}`,
		`{"site":"a","version":01,"state":"live","since":"2015-05-17T10:00:00Z"}`,
		`{"site":"a","version":+1,"state":"live","since":"2015-05-17T10:00:00Z"}`,
		`{"site":"a","version":1,"state":"live","since":"2015-05-17T10:00:00+01:00","pinned":true}`,
		`{"site":"a","version":1,"state":"dead","since":"2015-05-17T10:00:00Z"}`,
		`{"site":"a","version":1,"state":"live","since":"2015-05-17t10:00:00,5Z"}`,
		`{"site":"a","version":1,"state":"live","since":"2015-05-17T10:00:00Z"} `,
		`{"site":"a","version":1,"state":"live","since":"\u0032015-05-17T10:00:00Z"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, site, fast := quick(b)
		l, err := control.DecodeLocation(b)
		if !fast {
			return
		}
		if err != nil || l.Site != string(site) || l.Version != p.version || l.State != states[p.state] || l.Pinned != p.pinned || !l.Since.Equal(p.since) {
			t.Errorf("%s: %q %+v, expected %+v, %v", b, site, p, l, err)
		}
	})
}

func TestTheUsualSpellingIsReadQuickly(t *testing.T) {
	for _, l := range []control.Location{
		{Site: "us-east", Version: 7, State: control.Live, Since: t0},
		{Site: "a", State: control.Moving, Since: t0.Truncate(time.Second), Pinned: true},
	} {
		b, err := control.Encode(l)
		ok(t, err)
		if _, _, fast := quick(b); !fast {
			t.Errorf("%s is not", b)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	body, err := control.Encode(control.Location{Site: "us-east", Version: 77, State: control.Live, Since: t0})
	ok(b, err)
	d := &Directory{names: newNames([]string{"us-east"})}
	b.Run("quick", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, _, err := d.decode(body); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := control.DecodeLocation(body); err != nil {
				b.Fatal(err)
			}
		}
	})
}
