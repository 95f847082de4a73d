package accesslog

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"penstock/infra/geo"
	"penstock/infra/shareddata"
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
	p := newTestParser(t, Combined, 1)
	for line := range bytes.SplitSeq(bytes.TrimSuffix(data, []byte{'\n'}), []byte{'\n'}) {
		fmt.Fprintf(&out, "%s\n", line)
		if line[0] != '#' {
			fmt.Fprintf(&out, "    %s\n", describe(p, line))
		}
	}
	golden(t, "lines.golden", out.String())
}

// The quirks of other people's logs: how many lines are counted, of class
// bad-request, and malformed, and at which field.
func TestQuirksOfRealLogs(t *testing.T) {
	dir := shareddata.Dir(t, "accesslog-quirks")
	for _, test := range []struct {
		file            string
		counted, noReqs int
		malformed       string // fields, in order
	}{
		// The two with a virtual host in front, the common line, the error log.
		{"apache2-logs.log", 4, 0, "login,bytes,login,host,host"},
		{"apache2-malformed.log", 11, 11, ""},
		{"nginx-http-malformed.log", 12, 12, ""},
		{"nginx_http-logs.log", 4, 0, "login,login,login,login,login"},
		// Each line has more columns behind the agent.
		{"traefik_clf.log", 0, 0, "agent,agent,agent,agent,agent,agent,agent"},
	} {
		t.Run(test.file, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join(dir, test.file))
			if err != nil {
				t.Fatal(err)
			}
			var counted, noReqs int
			var fields []string
			p := newTestParser(t, Detect(data), 1)
			for line := range bytes.SplitSeq(data, []byte{'\n'}) {
				if len(line) == 0 {
					continue
				}
				var r event.Request
				err := p.Parse(line, &r)
				var e *LineError
				switch {
				case errors.As(err, &e):
					fields = append(fields, e.Field)
				case err != nil:
					t.Fatal(err)
				default:
					counted++
					if r.Class == ClassBadRequest {
						noReqs++
						if r.Status != 400 || r.Bytes == 0 || r.Owner != "" {
							t.Errorf("%s: status, bytes and time are to be kept: %+v", line, r)
						}
					}
				}
			}
			if got := strings.Join(fields, ","); counted != test.counted || noReqs != test.noReqs || got != test.malformed {
				t.Errorf("counted %d, no requests %d, malformed %q; expected %+v", counted, noReqs, got, test)
			}
		})
	}
}
