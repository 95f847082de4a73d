package loads

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"penstock/pipeline/experiment/recorded"
)

// Recording is arrivals that were recorded, with a size each.
type Recording struct {
	Name string
	Rows []recorded.Row // At is ns from the first
	Span int64          // ns until it begins again
	Mean float64        // size
	// Dynamic says that rows tell which are dynamic; otherwise that is drawn.
	Dynamic bool
}

// newRecording puts rows in order; the round after begins as long after the last as one is
// after another on average.
func newRecording(name string, rows []recorded.Row, dynamic bool) (*Recording, error) {
	if len(rows) < 2 {
		return nil, fmt.Errorf("%w: %s: %d rows, expected more", ErrRecording, name, len(rows))
	}
	slices.SortStableFunc(rows, func(a, b recorded.Row) int {
		switch {
		case a.At < b.At:
			return -1
		case a.At > b.At:
			return 1
		}
		return 0
	})
	first, last := rows[0].At, rows[len(rows)-1].At
	sum := 0.0
	for i := range rows {
		rows[i].At -= first
		sum += rows[i].Size
	}
	if first == last || !(sum > 0) {
		return nil, fmt.Errorf("%w: %s: all rows are of one time, or of no size", ErrRecording, name)
	}
	span := last - first
	return &Recording{Name: name, Rows: rows, Span: span + span/int64(len(rows)-1), Mean: sum / float64(len(rows)), Dynamic: dynamic}, nil
}

// Replay is a load that was recorded.
type Replay struct {
	Recording *Recording
	Rate      float64 // requests a second, on average over the recording
	Length    time.Duration
	Kinds     []uint8 // pages of kinds; nil: drawn by their shares
	Pages     []Page
	Stations  *Stations
}

// Draw draws the requests of a seed, in order of their coming: from a place of the
// recording that it draws on, from the beginning again at the end.
func (p *Replay) Draw(seed uint64) []Request {
	r := p.Recording
	draw := rand.New(rand.NewPCG(seed, 4))
	faster := p.Rate / (float64(len(r.Rows)) / (float64(r.Span) / 1e9))
	kb := MeanKB(p.Pages) / r.Mean
	first := draw.IntN(len(r.Rows))
	var out []Request
	for i := first; ; i++ {
		row := &r.Rows[i%len(r.Rows)]
		round := int64(i / len(r.Rows))
		at := int64(float64(row.At+round*r.Span-r.Rows[first].At) / faster)
		if at >= p.Length.Nanoseconds() {
			return out
		}
		q := Request{At: at, Page: page(draw, p.Pages, nil), KB: row.Size * kb, Dynamic: row.Dynamic}
		if p.Kinds != nil {
			q.Page = p.Kinds[row.Kind]
		}
		if u := draw.Float64(); !r.Dynamic {
			q.Dynamic = u < p.Pages[q.Page].Dynamic
		}
		p.Stations.times(&q, draw)
		out = append(out, q)
	}
}

// Azure is the hour of inference requests; conversations are kind 0, code is kind 1, and a
// size is the tokens read and made.
func Azure(dir string) (*Recording, error) {
	rows, err := recorded.Azure(dir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRecording, err)
	}
	return newRecording("azure-llm-2023", rows, false)
}

// NASA is the morning of a web server.
func NASA(name string) (*Recording, error) {
	rows, err := recorded.NASA(name, time.Nanosecond)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRecording, err)
	}
	return newRecording("nasa-19950801", rows, true)
}
