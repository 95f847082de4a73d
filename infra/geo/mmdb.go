package geo

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/oschwald/maxminddb-golang/v2"
)

// mmdb is a MaxMind database whose records are all read at the start: a lookup
// walks the tree to a record's offset and finds its place here.
type mmdb struct {
	reader *maxminddb.Reader
	places map[uintptr]Place
}

func (m *mmdb) lookup(addr netip.Addr) (Place, bool) {
	r := m.reader.Lookup(addr)
	if !r.Found() {
		return Place{}, false
	}
	p, ok := m.places[r.Offset()]
	return p, ok
}

// record is what we read of a City, Enterprise or Country record.
type record struct {
	Location struct {
		Latitude  *float64 `maxminddb:"latitude"`
		Longitude *float64 `maxminddb:"longitude"`
	} `maxminddb:"location"`
	Country           country `maxminddb:"country"`
	RegisteredCountry country `maxminddb:"registered_country"`
}

type country struct {
	Code string `maxminddb:"iso_code"`
}

// openMMDB reads an mmdb file. A file of centroids beside it places records
// that name a country only; without one they are unknown.
func openMMDB(file string) (*DB, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("open geo database: %w", err)
	}
	reader, err := maxminddb.OpenBytes(data)
	if err != nil {
		return nil, fmt.Errorf("%s: no MaxMind database: %w: %w", file, err, ErrDatabase)
	}
	sum := sha256.New()
	sum.Write(data)
	var centroids map[string]Place
	if beside, err := one(filepath.Dir(file), "country_latlng*.csv", "country_latlng*.csv.gz"); err == nil {
		plain, err := readPlain(beside)
		if err != nil {
			return nil, err
		}
		if centroids, err = readCentroids(beside, plain); err != nil {
			return nil, err
		}
		sum.Write(plain)
	}
	m := &mmdb{reader: reader, places: make(map[uintptr]Place)}
	if err := m.readPlaces(file, centroids); err != nil {
		return nil, err
	}
	return &DB{source: m, digest: "sha256:" + hex.EncodeToString(sum.Sum(nil)), name: file}, nil
}

// readPlaces reads each record once and fails at the first that is damaged.
func (m *mmdb) readPlaces(file string, centroids map[string]Place) error {
	// A tree of n nodes has at most n + 1 leaves. A damaged one that leads back
	// into itself has endless ones.
	left := uint64(m.reader.Metadata.NodeCount) + 1
	seen := make(map[uintptr]bool)
	for r := range m.reader.Networks() {
		if err := r.Err(); err != nil {
			return fmt.Errorf("%s: network %s: %w: %w", file, r.Prefix(), err, ErrDatabase)
		}
		if left == 0 {
			return fault(file, 0, "a search tree that leads back into itself", "a tree")
		}
		left--
		if seen[r.Offset()] {
			continue
		}
		seen[r.Offset()] = true
		var rec record
		if err := r.Decode(&rec); err != nil {
			return fmt.Errorf("%s: record of %s: %w: %w", file, r.Prefix(), err, ErrDatabase)
		}
		p, ok, err := rec.place(centroids)
		if err != nil {
			return fmt.Errorf("%s: record of %s: %w", file, r.Prefix(), err)
		}
		if ok {
			m.places[r.Offset()] = p
		}
	}
	if len(m.places) == 0 {
		return fault(file, 0, m.reader.Metadata.DatabaseType,
			"a database with positions, or one of countries with a country_latlng*.csv beside it")
	}
	return nil
}

// place returns the position of a record, else the centroid of its country.
func (r *record) place(centroids map[string]Place) (Place, bool, error) {
	code := r.Country.Code
	if code == "" {
		code = r.RegisteredCountry.Code
	}
	lat, lon := r.Location.Latitude, r.Location.Longitude
	if lat == nil || lon == nil {
		p, ok := centroids[code]
		return p, ok, nil
	}
	if !(math.Abs(*lat) <= 90) || !(math.Abs(*lon) <= 180) {
		return Place{}, false, fmt.Errorf("location %v, %v, expected degrees: %w", *lat, *lon, ErrDatabase)
	}
	return Place{Lat: *lat, Lon: *lon, Country: code}, true, nil
}
