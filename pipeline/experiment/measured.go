package experiment

import (
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"penstock/schemas/sphere"
)

// measured is what is known of regions of clouds: where they are, round trips
// between them, prices of traffic between them.
type measured struct {
	regions []region
	index   map[string]int
	rtt     [][]float64 // ms, from the row's region to the column's; NaN: not measured
	usd     [][]float64 // US dollars a GB from the row's region to the column's; NaN: no price
	self    float64     // ms inside a region: the median of those measured
	taken   taken
}

type region struct {
	name     string
	at       sphere.Vector
	lat, lon float64
}

// taken counts what was read and what was left.
type taken struct {
	Regions   int `json:"regions"`
	Pairs     int `json:"pairs"`
	Reversed  int `json:"pairs_from_the_other_direction"`
	OtherTier int `json:"rows_of_other_tiers"`
	Unplaced  int `json:"regions_without_coordinates"`
	Selves    int `json:"self_pairs"`
	Prices    int `json:"prices"`
}

// premium is the network tier that is taken: the default one of all three
// providers (only GCP has another).
const premium = "PREMIUM"

// loadMeasured reads a folder that holds clouds-skyplane (latency.csv.gz,
// cost.csv.gz) and cloud-regions-coords (a CSV a provider). The error wraps
// ErrData.
func loadMeasured(dir string) (*measured, error) {
	m := &measured{index: map[string]int{}}
	coords, err := loadCoordinates(filepath.Join(dir, "cloud-regions-coords"))
	if err != nil {
		return nil, err
	}
	if err := m.loadRTT(filepath.Join(dir, "clouds-skyplane", "latency.csv.gz"), coords); err != nil {
		return nil, err
	}
	if err := m.loadPrices(filepath.Join(dir, "clouds-skyplane", "cost.csv.gz")); err != nil {
		return nil, err
	}
	m.taken.Regions = len(m.regions)
	return m, nil
}

// rows calls f for each line of a CSV with the named columns, gzip by its name.
func rows(name string, columns []string, f func(line int, fields []string) error) error {
	file, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrData, err)
	}
	defer file.Close()
	var in io.Reader = file
	if strings.HasSuffix(name, ".gz") {
		z, err := gzip.NewReader(file)
		if err != nil {
			return fmt.Errorf("%w: %s: %w", ErrData, name, err)
		}
		defer z.Close()
		in = z
	}
	c := csv.NewReader(in)
	head, err := c.Read()
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrData, name, err)
	}
	at := make([]int, len(columns))
	for i, want := range columns {
		if at[i] = slices.Index(head, want); at[i] < 0 {
			return fmt.Errorf("%w: %s: no column %s, there are %q", ErrData, name, want, head)
		}
	}
	fields := make([]string, len(columns))
	for {
		rec, err := c.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: %s: %w", ErrData, name, err)
		}
		for i, k := range at {
			fields[i] = rec[k]
		}
		line, _ := c.FieldPos(0)
		if err := f(line, fields); err != nil {
			return fmt.Errorf("%w: %s line %d: %w", ErrData, name, line, err)
		}
	}
}

// loadCoordinates reads where regions are, by provider:region. Regions without
// coordinates are left out.
func loadCoordinates(dir string) (map[string][2]float64, error) {
	out := map[string][2]float64{}
	for _, provider := range []string{"aws", "azure", "gcp"} {
		err := rows(filepath.Join(dir, provider+".csv"), []string{"region", "lat", "lon"}, func(_ int, f []string) error {
			if f[1] == "" || f[2] == "" {
				return nil
			}
			lat, err1 := strconv.ParseFloat(f[1], 64)
			lon, err2 := strconv.ParseFloat(f[2], 64)
			if err := errors.Join(err1, err2); err != nil {
				return err
			}
			out[provider+":"+f[0]] = [2]float64{lat, lon}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// coordinateName is the name under which a region's coordinates stand: GCP's
// round trips are of zones, whose letter is no part of the region's name.
func coordinateName(name string) string {
	if strings.HasPrefix(name, "gcp:") {
		if i := strings.LastIndexByte(name, '-'); i > 0 {
			return name[:i]
		}
	}
	return name
}

// loadRTT takes the mean round trips of the premium tier. A pair that was
// measured one way only has that of the other way too.
func (m *measured) loadRTT(name string, coords map[string][2]float64) error {
	type key [2]string
	all, unplaced := map[key]float64{}, map[string]bool{}
	var selves []float64
	err := rows(name, []string{"src_region", "src_tier", "dst_region", "dst_tier", "avg_rtt", "min_rtt"}, func(_ int, f []string) error {
		rtt, err := strconv.ParseFloat(f[4], 64)
		if err != nil {
			return err
		}
		if f[0] == f[2] {
			// The means of some are hundreds of ms: a region to itself is not that far.
			least, err := strconv.ParseFloat(f[5], 64)
			if err != nil {
				return err
			}
			selves = append(selves, least)
			return nil
		}
		if f[1] != premium || f[3] != premium {
			m.taken.OtherTier++
			return nil
		}
		for _, region := range []string{f[0], f[2]} {
			if _, ok := coords[coordinateName(region)]; !ok {
				unplaced[region] = true
			}
		}
		all[key{f[0], f[2]}] = rtt
		return nil
	})
	if err != nil {
		return err
	}
	var names []string
	for k := range all {
		names = append(names, k[0], k[1])
	}
	slices.Sort(names)
	for _, n := range slices.Compact(names) {
		if unplaced[n] {
			continue
		}
		c := coords[coordinateName(n)]
		m.index[n] = len(m.regions)
		m.regions = append(m.regions, region{n, sphere.FromDegrees(c[0], c[1]), c[0], c[1]})
	}
	if len(m.regions) == 0 || len(selves) == 0 {
		return fmt.Errorf("%w: %s: %d regions with coordinates, %d round trips inside a region", ErrData, name, len(m.regions), len(selves))
	}
	m.taken.Unplaced, m.taken.Selves = len(unplaced), len(selves)
	slices.Sort(selves)
	m.self = selves[len(selves)/2]
	m.rtt = square(len(m.regions))
	for i, a := range m.regions {
		for j, b := range m.regions {
			there, ok := all[key{a.name, b.name}]
			back, other := all[key{b.name, a.name}]
			switch {
			case i == j:
				m.rtt[i][j] = m.self
			case ok:
				m.rtt[i][j] = there
				m.taken.Pairs++
			case other:
				m.rtt[i][j] = back
				m.taken.Pairs++
				m.taken.Reversed++
			}
		}
	}
	return nil
}

func square(n int) [][]float64 {
	out := make([][]float64, n)
	for i := range out {
		out[i] = slices.Repeat([]float64{math.NaN()}, n)
	}
	return out
}

func (m *measured) loadPrices(name string) error {
	m.usd = square(len(m.regions))
	return rows(name, []string{"src", "dest", "src_tier", "dest_tier", "cost"}, func(_ int, f []string) error {
		from, ok1 := m.index[f[0]]
		to, ok2 := m.index[f[1]]
		if !ok1 || !ok2 || f[2] != premium || f[3] != premium {
			return nil
		}
		usd, err := strconv.ParseFloat(f[4], 64)
		if err != nil {
			return err
		}
		if usd < 0 {
			return fmt.Errorf("cost: got %v, expected at least 0", usd)
		}
		m.usd[from][to] = usd
		m.taken.Prices++
		return nil
	})
}

// nearest is the region nearest to a place.
func (m *measured) nearest(lat, lon float64) (int, float64) {
	at, best, least := sphere.FromDegrees(lat, lon), 0, math.Inf(1)
	for i := range m.regions {
		if km := sphere.Distance(at, m.regions[i].at); km < least {
			best, least = i, km
		}
	}
	return best, least
}

// table is the network of measured round trips: a user's way to the region
// nearest to it by the formula, and from there to the site as measured.
type table struct {
	*measured
	sites []int // regions
}

// RTT is the measured round trip, in ms.
func (t table) RTT(lat, lon float64, site int) float64 {
	from, km := t.nearest(lat, lon)
	return sphere.RTT(km) + t.rtt[from][t.sites[site]]
}
