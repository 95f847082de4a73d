// Package recorded reads recordings of arrivals that others have published, as they are:
// what an experiment makes of them is its own. It has no state. A recording that cannot be
// read is [ErrRecording], with the file and the line.
package recorded

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// ErrRecording is returned for a recording that is missing or has another form.
var ErrRecording = errors.New("recording")

// Row is one row of a recording.
type Row struct {
	At      int64 // ns since 1970
	Size    float64
	Kind    uint8
	Dynamic bool // only NASA's can tell
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
func Azure(dir string) ([]Row, error) {
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
	return rows, nil
}

// NASA reads the morning of a web server; a size is the bytes of the answer. Its times are
// whole seconds: requests of a second are spread over it, in steps, by a generator of a
// fixed seed.
func NASA(name string, step time.Duration) ([]Row, error) {
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
			At: at*int64(time.Second) + draw.Int64N(int64(time.Second/step))*int64(step), Size: size, Dynamic: strings.Contains(fields[4], "cgi-bin") || strings.Contains(fields[4], "?"),
		})
		return nil
	})
	return rows, err
}
