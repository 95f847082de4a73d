package splitting

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"time"

	"penstock/pipeline/experiment/recorded"
)

// Source is a recording of arrivals.
type Source struct {
	Rows int `json:"rows"`
	// Span is from the first to the last, Rate a second.
	Span string  `json:"span"`
	Rate float64 `json:"rate"`
	// Faster is by how much it is sped up, by application, so that its mean rate is
	// the application's.
	Faster map[string]float64 `json:"faster"`
}

// recording is arrivals that were recorded.
type recording struct {
	name  string
	times []int64 // µs from the first, ascending
	span  int64   // µs until it begins again
}

// recordedTrials are the runs with arrivals of each recording.
func (r *Result) recordedTrials(dir string, seeds int) ([]trial, error) {
	azure, err := loadAzure(filepath.Join(dir, "azure-llm-2023"))
	if err != nil {
		return nil, err
	}
	nasa, err := loadNASA(filepath.Join(dir, "nasa-19950801", "nasa_19950801.tsv.gz"))
	if err != nil {
		return nil, err
	}
	p := r.params
	faults := p.named(p.Recorded.Faults)
	r.Recorded = map[string]Source{}
	var out []trial
	for _, rec := range []*recording{azure, nasa} {
		source := Source{
			Rows: len(rec.times), Span: (time.Duration(rec.span) * time.Microsecond).Round(time.Second).String(), Rate: rec.rate(), Faster: map[string]float64{},
		}
		for i := range p.Applications {
			if !slices.Contains(p.Recorded.Applications, p.Applications[i].Name) {
				continue
			}
			a, err := p.Applications[i].build(&p.Network)
			if err != nil {
				return nil, fmt.Errorf("%w: %w", ErrParams, err)
			}
			source.Faster[a.name] = a.load.Rate * float64(len(a.load.Sites)) / rec.rate()
			for _, t := range p.trialsOf(seeds, faults, func(int) *application { return a }) {
				t.recorded, t.keep = rec, false
				out = append(out, t)
			}
		}
		r.Recorded[rec.name] = source
	}
	return out, nil
}

// rate is how many a second.
func (r *recording) rate() float64 { return float64(len(r.times)) / (float64(r.span) / 1e6) }

// arrivals are those of a run by site: from a place that the seed draws, faster by
// as much as gives each site its rate, from the beginning again at the end.
func (r *recording) arrivals(seed uint64, sites int, length time.Duration, rate float64) [][]int64 {
	draw := rand.New(rand.NewPCG(seed, 3))
	out := make([][]int64, sites)
	faster := rate * float64(sites) / r.rate()
	first := draw.IntN(len(r.times))
	for i := first; ; i++ {
		round := int64(i / len(r.times))
		at := int64(float64(r.times[i%len(r.times)]+round*r.span-r.times[first]) / faster)
		if at >= length.Microseconds() {
			return out
		}
		site := draw.IntN(sites)
		out[site] = append(out[site], at)
	}
}

// newRecording makes times relative; the round after begins as long after the last
// as one is after another on average.
func newRecording(name string, times []int64) (*recording, error) {
	if len(times) < 2 {
		return nil, fmt.Errorf("%w: %s: %d rows, expected more", ErrData, name, len(times))
	}
	slices.Sort(times)
	first, last := times[0], times[len(times)-1]
	if first == last {
		return nil, fmt.Errorf("%w: %s: all rows are of one time", ErrData, name)
	}
	for i := range times {
		times[i] -= first
	}
	return &recording{name: name, times: times, span: last - first + (last-first)/int64(len(times)-1)}, nil
}

// loadAzure is both classes of the hour of inference requests.
func loadAzure(dir string) (*recording, error) {
	rows, err := recorded.Azure(dir)
	return ofRows("azure-llm-2023", rows, err)
}

// loadNASA is the morning of a web server.
func loadNASA(name string) (*recording, error) {
	rows, err := recorded.NASA(name, time.Microsecond)
	return ofRows("nasa-19950801", rows, err)
}

func ofRows(name string, rows []recorded.Row, err error) (*recording, error) {
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrData, err)
	}
	times := make([]int64, 0, len(rows))
	for _, r := range rows {
		times = append(times, r.At/int64(time.Microsecond))
	}
	return newRecording(name, times)
}
