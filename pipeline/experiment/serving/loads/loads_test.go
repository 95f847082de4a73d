package loads

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"penstock/pipeline/experiment/recorded"
)

var (
	pages = []Page{
		{Name: "a", Share: 0.25, KB: 20, Sigma: 0.5, Dynamic: 0.5, Limit: time.Second, Penalty: 1},
		{Name: "b", Share: 0.75, KB: 60, Sigma: 0.5, Dynamic: 0.1, Limit: time.Second, Penalty: 2},
	}
	stations = Stations{Before: Station{MS: 5, PerKB: 0.1}, Disk: Station{MS: 10, PerKB: 0.5}, Behind: Station{MS: 5, PerKB: 0.2}, Database: Station{MS: 50}, Sigma: 0.3}
)

// TestLoadsAreWhatTheyAreSaidToBe: rates follow the course, shares and sizes the pages, and
// times the stations.
func TestLoadsAreWhatTheyAreSaidToBe(t *testing.T) {
	t.Parallel()
	m := Made{Course: [][2]float64{{0, 50}, {100, 50}, {101, 150}}, Capacity: 100, Length: 200 * time.Second, Pages: pages, Stations: &stations}
	requests := m.Draw(7)
	if !slices.IsSortedFunc(requests, func(a, b Request) int { return int(a.At - b.At) }) {
		t.Error("not in order")
	}
	var early, b, dynamic int
	var kb, disk float64
	for i := range requests {
		r := &requests[i]
		if r.At < 100e9 {
			early++
		}
		if r.Page == 1 {
			b++
		}
		if r.Dynamic {
			dynamic++
		}
		if r.Dynamic != (r.Database > 0) {
			t.Fatalf("%+v", *r)
		}
		kb += r.KB
		disk += float64(r.Disk) / 1e6
	}
	n := float64(len(requests))
	about := func(what string, got, want float64) {
		if math.Abs(got/want-1) > 0.06 {
			t.Errorf("%s: got %v, expected about %v", what, got, want)
		}
	}
	about("requests of the first half", float64(early), 5000)
	about("requests", n, 20000)
	about("share of b", float64(b)/n, 0.75)
	about("dynamic", float64(dynamic)/n, 0.2)
	about("KB", kb/n, MeanKB(pages))
	about("ms at the disk", disk/n, 35)
	about("bottleneck", stations.Bottleneck(pages), 0.035)
	if !slices.Equal(requests, m.Draw(7)) || slices.Equal(requests, m.Draw(8)) {
		t.Error("a seed is to give the same, and another one others")
	}
}

// TestBurstsAndMixes change the load and the shares for their time.
func TestBurstsAndMixes(t *testing.T) {
	t.Parallel()
	m := Made{
		Course: [][2]float64{{0, 10}}, Capacity: 100, Length: 1000 * time.Second, Pages: pages, Stations: &stations,
		Bursts: &Bursts{Calm: 10 * time.Second, Burst: 10 * time.Second, Load: 90},
		Mix:    &Mix{From: 500 * time.Second, To: 600 * time.Second, Shares: []float64{1, 0}},
	}
	requests := m.Draw(1)
	if n := len(requests); n < 40000 || n > 60000 {
		t.Errorf("%d requests, expected about 50,000", n)
	}
	for i := range requests {
		if r := &requests[i]; r.At >= 500e9 && r.At < 600e9 && r.Page != 0 {
			t.Fatalf("%+v within the mix", *r)
		}
	}
	for _, bad := range []Mix{{To: 1, Shares: []float64{1}}, {To: 1, Shares: []float64{2, -1}}, {To: 0, Shares: []float64{1, 0}}} {
		if bad.Fits(2) {
			t.Errorf("%+v fits", bad)
		}
	}
}

func TestCoursesThatAreNone(t *testing.T) {
	t.Parallel()
	for _, c := range [][][2]float64{nil, {{5, 1}, {5, 2}}, {{-1, 1}}, {{0, -1}}, {{0, math.NaN()}}} {
		if err := CheckCourse(c); !errors.Is(err, ErrCourse) {
			t.Errorf("%v: got %v", c, err)
		}
	}
	c := [][2]float64{{10, 20}, {20, 40}}
	for second, want := range map[float64]float64{0: 20, 10: 20, 15: 30, 20: 40, 99: 40} {
		if got := at(c, second); got != want {
			t.Errorf("%v per cent at %v, expected %v", got, second, want)
		}
	}
}

// TestReplay: a recording goes round, at the rate that is asked for, its sizes scaled to the
// mean of the pages.
func TestReplay(t *testing.T) {
	t.Parallel()
	rec, err := newRecording("r", []recorded.Row{{At: 2e9, Size: 10, Kind: 1}, {At: 0, Size: 30, Dynamic: true}, {At: 1e9, Size: 20}}, true)
	if err != nil {
		t.Fatal(err)
	}
	p := Replay{Recording: rec, Rate: 10, Length: 30 * time.Second, Kinds: []uint8{1, 0}, Pages: pages, Stations: &stations}
	requests := p.Draw(3)
	if len(requests) != 300 {
		t.Errorf("%d requests, expected 10 a second", len(requests))
	}
	for i, r := range requests {
		if r.Dynamic != (r.KB == 75) || (r.Page == 0) != (r.KB == 25) || i > 0 && r.At-requests[i-1].At != 1e8 {
			t.Fatalf("request %d: %+v", i, r)
		}
	}
	for _, rows := range [][]recorded.Row{nil, {{Size: 1}, {Size: 1}}, {{}, {At: 1}}} {
		if _, err := newRecording("r", rows, false); !errors.Is(err, ErrRecording) {
			t.Errorf("%v: got %v", rows, err)
		}
	}
	name := filepath.Join(t.TempDir(), "x.gz")
	if err := os.WriteFile(name, []byte("no gzip"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NASA(name); !errors.Is(err, ErrRecording) {
		t.Errorf("got %v", err)
	}
}
