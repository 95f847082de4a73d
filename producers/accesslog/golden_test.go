package accesslog

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"penstock/infra/geo"
	"penstock/infra/golden"
	"penstock/schemas/event"
)

// atlas knows one network.
type atlas struct{}

func (atlas) Lookup(a netip.Addr) (geo.Place, bool) {
	if netip.MustParsePrefix("192.0.2.0/24").Contains(a) {
		return geo.Place{Lat: 47.5, Lon: 8.25, Country: "CH"}, true
	}
	return geo.Place{}, false
}

// named returns a format that Penstock knows.
func named(t testing.TB, name string) *Format {
	t.Helper()
	f, err := Named(name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func newTestParser(t testing.TB, f *Format, depth int) *Parser {
	t.Helper()
	p, err := NewParser(f, Options{Key: []byte("key of the tests"), OwnerDepth: depth, Geo: atlas{}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// describe writes out what a line became.
func describe(p *Parser, line []byte) string {
	var r event.Request
	if err := p.Parse(line, &r); err != nil {
		return "malformed " + err.Error()
	}
	s := fmt.Sprintf("%s %s user=%.8s owner=%q status=%d bytes=%d", time.UnixMicro(r.Time).UTC().Format(time.RFC3339),
		r.Op, r.User, r.Owner, r.Status, r.Bytes)
	if r.HasPlace() {
		s += fmt.Sprintf(" at=%v,%v", r.Lat, r.Lon)
	}
	if r.Class != "" {
		s += " class=" + r.Class
	}
	return s
}

func TestGoldenLines(t *testing.T) {
	data, err := os.ReadFile("testdata/lines.log")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	p := newTestParser(t, named(t, "combined"), 1)
	for line := range bytes.SplitSeq(bytes.TrimSuffix(data, []byte{'\n'}), []byte{'\n'}) {
		fmt.Fprintf(&out, "%s\n", line)
		if line[0] != '#' {
			fmt.Fprintf(&out, "    %s\n", describe(p, line))
		}
	}
	golden.File(t, "lines.golden", out.String())
}
