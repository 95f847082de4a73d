package loads

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Row is one row of a recording.
type Row struct {
	At      int64 // ns from the first
	Size    float64
	Kind    uint8
	Dynamic bool
}

// Recording is arrivals that were recorded, with a size each.
type Recording struct {
	Name string
	Rows []Row
	Span int64   // ns until it begins again
	Mean float64 // size
	// Dynamic says that rows tell which are dynamic; otherwise that is drawn.
	Dynamic bool
}

// newRecording puts rows in order; the round after begins as long after the last as one is
// after another on average.
func newRecording(name string, rows []Row, dynamic bool) (*Recording, error) {
	if len(rows) < 2 {
		return nil, fmt.Errorf("%w: %s: %d rows, expected more", ErrRecording, name, len(rows))
	}
	slices.SortStableFunc(rows, func(a, b Row) int {
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

// lines calls f for each line of a gzipped file but the first.
func lines(name string, f func(line string) error) error {
	file, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRecording, err)
	}
	defer file.Close()
	z, err := gzip.NewReader(file)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrRecording, name, err)
	}
	defer z.Close()
	s := bufio.NewScanner(z)
	s.Buffer(nil, 1<<20)
	for n := 1; s.Scan(); n++ {
		if n == 1 {
			continue
		}
		if err := f(strings.TrimSuffix(s.Text(), "\r")); err != nil {
			return fmt.Errorf("%w: %s line %d: %w", ErrRecording, name, n, err)
		}
	}
	if err := s.Err(); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrRecording, name, err)
	}
	return nil
}

// Azure reads the hour of inference requests; conversations are kind 0, code is kind 1,
// and a size is the tokens read and made.
func Azure(dir string) (*Recording, error) {
	var rows []Row
	for kind, class := range []string{"conv", "code"} {
		err := lines(filepath.Join(dir, "AzureLLMInferenceTrace_"+class+".csv.gz"), func(line string) error {
			fields := strings.Split(line, ",")
			if len(fields) != 3 {
				return fmt.Errorf("%d fields, expected 3", len(fields))
			}
			at, err := time.Parse("2006-01-02 15:04:05", fields[0])
			if err != nil {
				return err
			}
			tokens := 0.0
			for _, f := range fields[1:] {
				n, err := strconv.ParseUint(f, 10, 32)
				if err != nil {
					return err
				}
				tokens += float64(n)
			}
			rows = append(rows, Row{At: at.UnixNano(), Size: tokens, Kind: uint8(kind)})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return newRecording("azure-llm-2023", rows, false)
}

// NASA reads the morning of a web server. Its times are whole seconds: requests of a
// second are spread over it, by a generator of a fixed seed.
func NASA(name string) (*Recording, error) {
	draw := rand.New(rand.NewPCG(1995, 801))
	var rows []Row
	err := lines(name, func(line string) error {
		fields := strings.Split(line, "\t")
		if len(fields) < 7 {
			return fmt.Errorf("%d fields, expected at least 7", len(fields))
		}
		at, err := strconv.ParseInt(fields[2], 10, 64)
		if err != nil {
			return err
		}
		size, err := strconv.ParseFloat(fields[6], 64)
		if err != nil || size < 0 {
			return fmt.Errorf("size %q", fields[6])
		}
		rows = append(rows, Row{
			At: at*1_000_000_000 + draw.Int64N(1_000_000_000), Size: size, Dynamic: strings.Contains(fields[4], "cgi-bin") || strings.Contains(fields[4], "?"),
		})
		return nil
	})
	if err != nil {
		return nil, err
	}
	return newRecording("nasa-19950801", rows, true)
}
