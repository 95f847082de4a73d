// Package sizes reads the sizes of requests from a recording: lines of
// whitespace-separated fields of which the last is a size in bytes, plain or
// compressed by gzip. A list of sizes alone is such a file, and so is one of time,
// object and size (cdn-adaptsize).
//
// What the queue of a coder sees is segments of at most [Segment] bytes: a larger
// size becomes as many as it takes, one after another. A size of 0 is a request
// without bytes and counts as one of 1 byte: it is asked for all the same.
//
// Failures: a file that cannot be opened or has a line without a size ([ErrFile]).
package sizes

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
)

// Segment is the most bytes of one request to a coder's queue (8 MiB).
const Segment = 8 << 20

// most is how many requests are read; what a file has beyond them is left.
const most = 4 << 20

// Load reads a file. The error wraps ErrFile.
func Load(path string) (bytes []int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFile, err)
	}
	defer f.Close()
	return Read(f)
}

// Read reads sizes, decompressing them if they are compressed.
func Read(r io.Reader) ([]int64, error) {
	b := bufio.NewReaderSize(r, 1<<16)
	if magic, err := b.Peek(2); err == nil && bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrFile, err)
		}
		b = bufio.NewReaderSize(z, 1<<16)
	}
	var out []int64
	lines := bufio.NewScanner(b)
	for n := 1; lines.Scan() && len(out) < most; n++ {
		fields := bytes.Fields(lines.Bytes())
		if len(fields) == 0 {
			continue
		}
		last := fields[len(fields)-1]
		size, err := strconv.ParseInt(string(last), 10, 64)
		if err != nil || size < 0 || size > math.MaxInt64/2 {
			return nil, fmt.Errorf("%w: line %d: got %q, expected a size in bytes", ErrFile, n, last)
		}
		out = split(out, size)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFile, err)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%w: no line", ErrFile)
	}
	return out, nil
}

// split appends a size as segments.
func split(out []int64, size int64) []int64 {
	for size > Segment && len(out) < most {
		out = append(out, Segment)
		size -= Segment
	}
	return append(out, max(size, 1))
}
