package report

import (
	"bufio"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"

	"penstock/schemas/sphere"
)

// maxFaults is how many faults of a table are named.
const maxFaults = 20

// maxRTT is the longest round trip in ms that a table may hold: a minute.
const maxRTT = 60_000

// fault is what is wrong with one line of a latency table.
type fault struct {
	file          string
	line          int
	field         string
	got, expected string
}

func (f fault) Error() string {
	return fmt.Sprintf("%s line %d: %s: got %s, expected %s", f.file, f.line, f.field, f.got, f.expected)
}

// Unwrap makes every fault an ErrLatency.
func (f fault) Unwrap() error { return ErrLatency }

// LoadLatency reads a measured table: CSV, plain or gzip, with a header that has
// the columns site, region and rtt_ms, in any order, and lat and lon for regions
// that are no site's name; others are not read. A region's place may stand in
// any of its rows. All faults are returned, each an ErrLatency that names file,
// line, field and what was expected.
func LoadLatency(file string) (*Latency, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLatency, err)
	}
	defer f.Close()
	b := bufio.NewReader(f)
	var r io.Reader = b
	if magic, _ := b.Peek(2); string(magic) == "\x1f\x8b" {
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrLatency, file, err)
		}
		defer z.Close()
		r = z
	}
	return readLatency(file, r)
}

// latencyReader reads a table line by line.
type latencyReader struct {
	*Latency
	csv     *csv.Reader
	columns map[string]int
	seen    map[pair]bool
	record  []string
	line    int
	faults  []error
	more    int // faults that are not named
}

type pair struct {
	site   string
	region int
}

func readLatency(file string, in io.Reader) (*Latency, error) {
	r := latencyReader{
		Latency: &Latency{file: file, index: map[string]int{}}, csv: csv.NewReader(in), columns: map[string]int{}, seen: map[pair]bool{},
	}
	r.csv.TrimLeadingSpace, r.csv.ReuseRecord = true, true
	if err := r.header(); err != nil {
		return nil, err
	}
	for {
		record, err := r.csv.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		var p *csv.ParseError
		if errors.As(err, &p) {
			r.line = p.Line
			r.bad("row", p.Err.Error(), "as many fields as the header has, quoted as CSV is")
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrLatency, file, err)
		}
		r.record = record
		r.line, _ = r.csv.FieldPos(0)
		r.row()
	}
	if len(r.rows) == 0 && len(r.faults) == 0 {
		r.bad("row", "none", "at least one row under the header")
	}
	if r.more > 0 {
		r.faults = append(r.faults, fmt.Errorf("%w: %s: %d more faults", ErrLatency, file, r.more))
	}
	if len(r.faults) > 0 {
		return nil, errors.Join(r.faults...)
	}
	return r.Latency, nil
}

// header learns which column is which.
func (r *latencyReader) header() error {
	r.line = 1
	names, err := r.csv.Read()
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: %s line 1: %w", ErrLatency, r.file, err)
	}
	for i, n := range names {
		r.columns[strings.TrimSpace(strings.TrimPrefix(n, "\ufeff"))] = i
	}
	for _, need := range []string{"site", "region", "rtt_ms"} {
		if _, ok := r.columns[need]; !ok {
			return fault{r.file, 1, need, "no such column", "a header with site, region and rtt_ms"}
		}
	}
	return nil
}

func (r *latencyReader) bad(field, got, expected string) {
	if len(r.faults) >= maxFaults {
		r.more++
		return
	}
	r.faults = append(r.faults, fault{r.file, r.line, field, got, expected})
}

// field returns a field's text, empty where there is no such column.
func (r *latencyReader) field(name string) string {
	i, ok := r.columns[name]
	if !ok {
		return ""
	}
	return strings.TrimSpace(r.record[i])
}

// number reads a field within bounds.
func (r *latencyReader) number(name string, least, most float64) (float64, bool) {
	text := r.field(name)
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || v < least || v > most {
		r.bad(name, fmt.Sprintf("%.60q", text), fmt.Sprintf("a number from %g to %g", least, most))
		return 0, false
	}
	return v, true
}

func (r *latencyReader) row() {
	site, name := r.field("site"), r.field("region")
	for _, f := range []struct{ name, text string }{{"site", site}, {"region", name}} {
		if f.text == "" {
			r.bad(f.name, "nothing", "a name")
			return
		}
	}
	ms, ok := r.number("rtt_ms", 0, maxRTT)
	if !ok {
		return
	}
	g, known := r.index[name]
	if !known {
		g = len(r.regions)
		r.index[name], r.regions = g, append(r.regions, region{name: strings.Clone(name), line: r.line})
	}
	r.place(&r.regions[g])
	p := pair{strings.Clone(site), g}
	if r.seen[p] {
		r.bad("region", fmt.Sprintf("a second row of %.60q and %.60q", site, name), "one row a pair")
		return
	}
	r.seen[p] = true
	r.rows = append(r.rows, measured{site: p.site, region: g, ms: ms})
}

// place takes in where a region is, if the row says it.
func (r *latencyReader) place(g *region) {
	if r.field("lat") == "" && r.field("lon") == "" {
		return
	}
	lat, ok1 := r.number("lat", -90, 90)
	lon, ok2 := r.number("lon", -180, 180)
	if !ok1 || !ok2 {
		return
	}
	at := sphere.FromDegrees(lat, lon)
	if g.placed && g.at != at {
		r.bad("lat", fmt.Sprintf("another place for region %.60q", g.name), "one place a region")
		return
	}
	g.at, g.placed = at, true
}
