package geo

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"
)

// openFolder reads country ranges and centroids. The digest is over the plain
// content of both, so that compressing a file changes no run.
func openFolder(dir string) (*DB, error) {
	rangesFile, err := one(dir, "*-country-ipv4.csv", "*-country-ipv4.csv.gz")
	if err != nil {
		return nil, err
	}
	centroidsFile, err := one(dir, "country_latlng*.csv", "country_latlng*.csv.gz")
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	data, err := readPlain(centroidsFile)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(sum, "%d\n", len(data))
	sum.Write(data)
	centroids, err := readCentroids(centroidsFile, data)
	if err != nil {
		return nil, err
	}
	if data, err = readPlain(rangesFile); err != nil {
		return nil, err
	}
	sum.Write(data)
	table, err := readRanges(rangesFile, data, centroids)
	if err != nil {
		return nil, err
	}
	return &DB{source: table, digest: "sha256:" + hex.EncodeToString(sum.Sum(nil)), name: dir}, nil
}

// one returns the only file in dir that a pattern matches.
func one(dir string, patterns ...string) (string, error) {
	var found []string
	for _, p := range patterns {
		// A pattern of ours is never malformed; the folder's own name may hold
		// characters that mean something in a pattern, so it is kept out.
		entries, err := os.ReadDir(dir)
		if err != nil {
			return "", fmt.Errorf("open geo database: %w", err)
		}
		for _, e := range entries {
			if ok, _ := filepath.Match(p, e.Name()); ok {
				found = append(found, filepath.Join(dir, e.Name()))
			}
		}
	}
	if len(found) != 1 {
		return "", fault(dir, 0, strings.Join(found, ", "), "one file "+strings.Join(patterns, " or "))
	}
	return found[0], nil
}

// maxPlain bounds what one file of a database may unpack to.
const maxPlain = 1 << 30

func readPlain(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("open geo database: %w", err)
	}
	defer f.Close()
	in := bufio.NewReader(f)
	var r io.Reader = in
	if magic, _ := in.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, fmt.Errorf("%s: %w: %w", file, err, ErrDatabase)
		}
		r = z
	}
	data, err := io.ReadAll(io.LimitReader(r, maxPlain+1))
	if err != nil {
		return nil, fmt.Errorf("%s line %d: %w: %w", file, bytes.Count(data, []byte{'\n'})+1, err, ErrDatabase)
	}
	if len(data) > maxPlain {
		return nil, fault(file, 0, "more", fmt.Sprintf("at most %d bytes", maxPlain))
	}
	return data, nil
}

// readCentroids reads country code, latitude and longitude by the names in the
// header row.
func readCentroids(file string, data []byte) (map[string]Place, error) {
	r := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))))
	r.ReuseRecord = true
	header, err := r.Read()
	if err != nil {
		return nil, csvFault(file, err)
	}
	code, lat, lon := -1, -1, -1
	for i, name := range header {
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "cca2", "country", "country_code":
			code = i
		case "lat", "latitude":
			lat = i
		case "lon", "lng", "longitude":
			lon = i
		}
	}
	if code < 0 || lat < 0 || lon < 0 {
		return nil, fault(file, 1, strings.Join(header, ","), "columns cca2, lat and lon")
	}
	out := make(map[string]Place)
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, csvFault(file, err)
		}
		line, _ := r.FieldPos(0)
		p := Place{Country: strings.Clone(row[code])}
		if !isCode(p.Country) {
			return nil, fault(file, line, row[code], "a country code of two capital letters")
		}
		if _, twice := out[p.Country]; twice {
			return nil, fault(file, line, row[code], "each country once")
		}
		var ok bool
		if p.Lat, ok = degrees(row[lat], 90); !ok {
			return nil, fault(file, line, row[lat], "a latitude from -90 to 90")
		}
		if p.Lon, ok = degrees(row[lon], 180); !ok {
			return nil, fault(file, line, row[lon], "a longitude from -180 to 180")
		}
		out[p.Country] = p
	}
}

func csvFault(file string, err error) error {
	var pe *csv.ParseError
	if errors.As(err, &pe) {
		return fmt.Errorf("%s line %d: %w: %w", file, pe.Line, pe.Err, ErrDatabase)
	}
	return fmt.Errorf("%s: %w: %w", file, err, ErrDatabase)
}

func degrees(s string, most float64) (float64, bool) {
	v, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	return v, err == nil && v >= -most && v <= most
}

func isCode(s string) bool {
	return len(s) == 2 && s[0] >= 'A' && s[0] <= 'Z' && s[1] >= 'A' && s[1] <= 'Z'
}
