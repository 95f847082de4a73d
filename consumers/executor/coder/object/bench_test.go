package object

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/klauspost/reedsolomon"
	"github.com/zeebo/xxh3"
)

// bare is klauspost/reedsolomon with the same checksum and nothing else: strips of the
// same length, each in memory of its own, lost ones rebuilt and checked; with the
// library's own cache of inverted matrices.
type bare struct {
	coder  reedsolomon.Encoder
	strips [][]byte
	sums   []uint64
	k      int
}

func newBare(b *testing.B, s Shape) *bare {
	b.Helper()
	coder, err := reedsolomon.New(s.K, s.N-s.K, reedsolomon.WithMaxGoroutines(1))
	if err != nil {
		b.Fatal(err)
	}
	r := &bare{coder: coder, strips: reedsolomon.AllocAligned(s.N, int(s.StripBytes(0))), sums: make([]uint64, s.N), k: s.K}
	for i := range s.K {
		copy(r.strips[i], noise(uint64(i), len(r.strips[i])))
	}
	return r
}

func (r *bare) encode(b *testing.B) {
	if err := r.coder.Encode(r.strips); err != nil {
		b.Fatal(err)
	}
	for i, s := range r.strips {
		r.sums[i] = xxh3.Hash(s)
	}
}

// decode reads the last k strips: as many are lost as may be.
func (r *bare) decode(b *testing.B, lost int) {
	n := len(r.strips)
	for i := lost; i < lost+r.k; i++ {
		if xxh3.Hash(r.strips[i]) != r.sums[i] {
			b.Fatal("checksum")
		}
	}
	length := len(r.strips[n-1])
	for i := range r.strips {
		if i < lost || i >= lost+r.k {
			r.strips[i] = r.strips[i][:0]
		}
	}
	if err := r.coder.ReconstructData(r.strips); err != nil {
		b.Fatal(err)
	}
	for i := range r.strips {
		r.strips[i] = r.strips[i][:length]
	}
	for i := range lost {
		if xxh3.Hash(r.strips[i]) != r.sums[i] {
			b.Fatal("checksum")
		}
	}
}

// BenchmarkAgainstBare is the row of DESIGN §7: strips and checksums, in turns with the
// bare library in one run. The ratio is of the medians; 1.0 is as fast. MD5 and SHA-256
// of the whole aren't in it, they have a row of their own below. A table is printed at
// the end, as `make bench` wants it.
func BenchmarkAgainstBare(b *testing.B) {
	var told strings.Builder
	tab := tabwriter.NewWriter(&told, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tab, "coder against klauspost/reedsolomon with the same checksum\tmeasured\tat least\t\n")
	defer func() {
		_ = tab.Flush() // to memory
		fmt.Printf("\n%s\n", told.String())
	}()
	for _, c := range []Coding{SharedCoding(), SpreadCoding(4, 2), SpreadCoding(12, 6)} {
		for _, size := range []int64{64 << 10, 3 << 20, 8 << 20} {
			s := c.shape(size, DefaultSegment)
			lost := min(s.K, s.N-s.K) / 2
			compared(b, tab, fmt.Sprintf("%v-%d-%d/%dKiB/encode", c.Layout, c.N, c.K, size>>10), func(b *testing.B) float64 {
				r, m := newBare(b, s), slab{layout: c.Layout}
				m.fit(s.N, s.StripBytes(0))
				data, sums := noise(1, int(size)), make([]uint64, 0, s.N)
				return turns(b, size, func() {
					for at := 0; at < len(data); { // as Encoder reads
						at += copy(m.rest(at, len(data)), data[at:])
					}
					m.pad(s.K, len(data))
					if err := encode(&m, s); err != nil {
						b.Fatal(err)
					}
					sums = m.seal(sums[:0], 1, 0)
				}, func() {
					for i := range s.K { // the same bytes come in
						copy(r.strips[i], data[min(i*len(r.strips[i]), len(data)):])
					}
					r.encode(b)
				})
			})
			compared(b, tab, fmt.Sprintf("%v-%d-%d/%dKiB/decode", c.Layout, c.N, c.K, size>>10), func(b *testing.B) float64 {
				r := newBare(b, s)
				r.encode(b)
				v := put(b, c, 0, "k", "v", noise(1, int(size)))
				d := decoderOf(b, v.Version)
				load(b, d, v)
				return turns(b, size, func() {
					if err := d.Begin(0); err != nil { // what is in Room stays
						b.Fatal(err)
					}
					for i := lost; i < lost+s.K; i++ {
						if faults, err := d.Fill(i, 1, s.FrameBytes(0)); err != nil || faults != nil {
							b.Fatal(faults, err)
						}
					}
					if _, err := d.WriteRange(io.Discard, 0, size); err != nil {
						b.Fatal(err)
					}
				}, func() { r.decode(b, lost) })
			})
		}
	}
}

// leastOfBare is what DESIGN §7 asks for.
const leastOfBare = 0.90

// compared runs a comparison and has a line of the table for it.
func compared(b *testing.B, tab io.Writer, name string, f func(*testing.B) float64) {
	ratio := 0.0
	if b.Run(name, func(b *testing.B) { ratio = f(b) }) && ratio > 0 {
		verdict := "met"
		if ratio < leastOfBare {
			verdict = "NOT MET"
		}
		fmt.Fprintf(tab, "%s\t%.2f\t%.2f\t%s\n", name, ratio, leastOfBare, verdict)
	}
}

func load(b *testing.B, d *Decoder, s stored) {
	b.Helper()
	if err := d.Begin(0); err != nil {
		b.Fatal(err)
	}
	for i := range s.Shape.N {
		c, _ := s.Shape.Run(0, i, 1)
		s.add(b, d, c)
	}
}

// turns measures ours and theirs in turn, so that a busy machine is so for both, and
// returns how fast ours is as a part of theirs.
func turns(b *testing.B, size int64, ours, theirs func()) (ratio float64) {
	b.ReportAllocs()
	b.SetBytes(2 * size)
	var a, z []time.Duration
	timed := func(f func()) time.Duration { start := time.Now(); f(); return time.Since(start) }
	ours()
	theirs()
	for b.Loop() {
		a, z = append(a, timed(ours)), append(z, timed(theirs))
	}
	ratio = float64(median(z)) / float64(median(a))
	b.ReportMetric(ratio, "of-bare")
	b.ReportMetric(float64(size)/float64(median(a))*1e3, "MB/s-ours")
	return ratio
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// BenchmarkEncoder is the whole encoder, MD5 and SHA-256 counted.
func BenchmarkEncoder(b *testing.B) {
	for _, size := range []int{64 << 10, 3 << 20} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			e, err := NewEncoder(SharedCoding(), 0)
			if err != nil {
				b.Fatal(err)
			}
			data := noise(1, size)
			r := bytes.NewReader(data)
			b.ReportAllocs()
			b.SetBytes(int64(size))
			for b.Loop() {
				r.Reset(data)
				if err := e.Reset("k", "v"); err != nil {
					b.Fatal(err)
				}
				e.Expect(int64(size))
				if _, err := e.Next(r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
