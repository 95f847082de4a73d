package report

import (
	"bytes"
	"compress/gzip"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"penstock/infra/shareddata"
	"penstock/schemas/event"
	"penstock/schemas/sphere"
)

// table writes a latency table and returns its name.
func table(t testing.TB, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "rtt.csv")
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

const goodTable = `region,site,rtt_ms,lat,lon,comment
east,east,1.5,,,the sites are regions by their own names
east,west,61.25,,,
boston,east,9,42.36,-71.06,
boston,west,70.5,,,
boston,mars,1e4,,,not in the configuration
`

func TestLatencyIsThatOfTheNearestRegion(t *testing.T) {
	l, err := LoadLatency(table(t, goodTable))
	if err != nil {
		t.Fatal(err)
	}
	r, err := l.Bind(clouds)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		lat, lon float64
		site     int
		want     float64 // ms
		measured bool
	}{
		{"at the region", 42.36, -71.06, 0, 9, true},
		{"nearest to Boston", 44, -70, 2, 70.5, true},
		{"nearest to the site", 36, -80, 0, 1.5, true},
		{"nearest to the site, served from afar", 36, -80, 2, 61.25, true},
		{"no row of the pair", 36, -80, 1, sphere.RTT(sphere.Km(36, -80, clouds[1].Lat, clouds[1].Lon)), false},
	} {
		us, measured := r.Between(sphere.FromDegrees(c.lat, c.lon), c.site)
		if measured != c.measured || math.Abs(float64(us)/1000-c.want) > 0.001 {
			t.Errorf("%s: %d µs, measured %v; expected %.3f ms, %v", c.name, us, measured, c.want, c.measured)
		}
	}
	s := r.Source()
	if s.Pairs != 4 || s.Regions != 2 || !slices.Equal(s.Missing, []string{"central – east", "central – boston"}) || !slices.Equal(s.Foreign, []string{"mars"}) {
		t.Errorf("source %+v", s)
	}
}

// Of regions at one place the first in the file has the users.
func TestEquallyNearRegionsAreInOrderOfTheFile(t *testing.T) {
	l, err := LoadLatency(table(t, "site,region,rtt_ms,lat,lon\neast,b,7,1,1\neast,a,9,1,1\n"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := l.Bind(clouds)
	if err != nil {
		t.Fatal(err)
	}
	if us, ok := r.Between(sphere.FromDegrees(2, 2), 0); us != 7000 || !ok {
		t.Errorf("%d µs, measured %v", us, ok)
	}
}

func TestLatencyTablesMayBeCompressed(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte("\ufeff" + goodTable)) // Into memory; a byte order mark is no part of a name.
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "rtt.csv.gz")
	if err := os.WriteFile(name, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	l, err := LoadLatency(name)
	if err != nil || len(l.rows) != 5 {
		t.Fatalf("%+v, %v", l, err)
	}
	if err := os.WriteFile(name, b.Bytes()[:b.Len()/2], 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadLatency(name); !errors.Is(err, ErrLatency) {
		t.Errorf("half a file: %v", err)
	}
}

func TestLatencyFaultsNameLineFieldAndWhatWasExpected(t *testing.T) {
	const head = "site,region,rtt_ms,lat,lon\n"
	for _, c := range []struct {
		name, text string
		want       []string // all in the error
	}{
		{"empty", "", []string{"line 1: site: got no such column, expected a header with site, region and rtt_ms"}},
		{"no column", "site,region,rtt\n", []string{"line 1: rtt_ms: got no such column"}},
		{"no row", head, []string{"line 1: row: got none, expected at least one row"}},
		{"no number", head + "east,east,fast,,\n", []string{`line 2: rtt_ms: got "fast", expected a number from 0 to 60000`}},
		{"not finite", head + "east,east,NaN,,\n", []string{`line 2: rtt_ms: got "NaN"`}},
		{"negative", head + "east,east,-1,,\n", []string{`line 2: rtt_ms: got "-1"`}},
		{"no site", head + ",east,5,,\n", []string{"line 2: site: got nothing, expected a name"}},
		{"no region", head + "east,,5,,\n", []string{"line 2: region: got nothing, expected a name"}},
		{"half a place", head + "east,oslo,5,59.9,\n", []string{`line 2: lon: got "", expected a number from -180 to 180`}},
		{"beyond the pole", head + "east,oslo,5,95,10\n", []string{`line 2: lat: got "95", expected a number from -90 to 90`}},
		{"two places", head + "east,oslo,5,59,10\nwest,oslo,5,60,10\n", []string{`line 3: lat: got another place for region "oslo", expected one place a region`}},
		{"twice", head + "east,east,5,,\nwest,east,5,,\neast,east,6,,\n", []string{`line 4: region: got a second row of "east" and "east", expected one row a pair`}},
		{"too few fields", head + "east,east\nwest,east,x,,\n", []string{"line 2: row: got wrong number of fields", `line 3: rtt_ms: got "x"`}},
		{"many faults", head + strings.Repeat("east,east,x,,\n", 25), []string{`line 21: rtt_ms`, "5 more faults"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			name := table(t, c.text)
			_, err := LoadLatency(name)
			if !errors.Is(err, ErrLatency) {
				t.Fatalf("got %v, expected ErrLatency", err)
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) || !strings.Contains(err.Error(), name) {
					t.Errorf("got\n%v\nexpected %s %s", err, name, w)
				}
			}
		})
	}
	if _, err := LoadLatency(filepath.Join(t.TempDir(), "none.csv")); !errors.Is(err, ErrLatency) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

func TestLatencyTablesThatDoNotFitTheSites(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"nowhere", "site,region,rtt_ms\neast,east,1\neast,oslo,5\n", `line 3: lat: got nothing for region "oslo", expected a latitude and longitude`},
		{"other sites", "site,region,rtt_ms\nmars,east,1\n", `site: got none of ["mars"], expected a site of the configuration`},
	} {
		l, err := LoadLatency(table(t, c.text))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Bind(clouds); !errors.Is(err, ErrLatency) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, expected %s", c.name, err, c.want)
		}
	}
}

func TestReportSaysWhatIsNotMeasured(t *testing.T) {
	l, err := LoadLatency(table(t, goodTable))
	if err != nil {
		t.Fatal(err)
	}
	rtts, err := l.Bind(clouds)
	if err != nil {
		t.Fatal(err)
	}
	c := NewCollector(clouds, time.Hour, WithRTTs(rtts))
	c.Row(row(0, "ann", "ann", "east", 0, 10, event.Read), "")
	c.Row(row(1, "ann", "ann", "central", 0, 10, event.Read), "")
	var r Report
	c.Fill(&r)
	central := sphere.RTT(sphere.Km(clouds[0].Lat, clouds[0].Lon, clouds[1].Lat, clouds[1].Lon))
	if math.Abs(float64(r.Latency.Mean)-(1.5+central)/2) > 0.002 || r.LatencySource.Requests != 1 || r.LatencySource.Pairs != 4 {
		t.Errorf("mean %v, expected %v; source %+v", r.Latency.Mean, (1.5+central)/2, r.LatencySource)
	}
	var b strings.Builder
	if err := r.Summary(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"4 pairs of a site and one of 2 regions", "2 pairs are missing in it (central – east, central – boston)", "for 1 requests of this replay", "lacks: mars"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the summary lacks %q:\n%s", want, b.String())
		}
	}
	// A shadow report does not count them, and says no number.
	r.Kind = KindShadow
	if notes := strings.Join(r.notes(), "\n"); !strings.Contains(notes, "which is assumed, stands in.") {
		t.Errorf("notes of a shadow report:\n%s", notes)
	}
}

// The measured round trips between clouds, brought into the table's form as its
// documentation says, can be read and bound.
func TestMeasuredCloudsCanBeRead(t *testing.T) {
	dir := shareddata.Dir(t, "clouds-skyplane")
	f, err := os.Open(filepath.Join(dir, "latency.csv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if _, err := text.ReadFrom(z); err != nil {
		t.Fatal(err)
	}
	out := bytes.NewBufferString("site,region,rtt_ms\n")
	for line := range strings.Lines(text.String()) {
		c := strings.Split(line, ",")
		if c[0] == "aws:us-east-1" && c[1] == "PREMIUM" && c[4] == "PREMIUM" && strings.HasPrefix(c[3], "aws:") {
			out.WriteString(c[0] + "," + c[3] + "," + c[7] + "\n")
		}
	}
	l, err := LoadLatency(table(t, out.String()))
	if err != nil || len(l.rows) < 15 {
		t.Fatalf("%d rows, %v", len(l.rows), err)
	}
	// Ireland and Virginia are 5,500 km apart.
	sites := []Site{{Name: "aws:us-east-1", Lat: 38.9, Lon: -77.4}, {Name: "aws:eu-west-1", Lat: 53.35, Lon: -6.26}}
	for _, g := range l.regions {
		if g.name != sites[0].Name && g.name != sites[1].Name {
			sites = append(sites, Site{Name: g.name, Lat: -80})
		}
	}
	r, err := l.Bind(sites)
	if err != nil {
		t.Fatal(err)
	}
	if us, ok := r.Between(sphere.FromDegrees(53, -6), 0); !ok || us < 50_000 || us > 110_000 {
		t.Errorf("from Ireland to Virginia %d µs, measured %v", us, ok)
	}
}
