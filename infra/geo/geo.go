package geo

import (
	"fmt"
	"net/netip"
	"os"
)

// Place is where an address is, in degrees, and the two-letter code of its
// country, "" if only the position is known.
type Place struct {
	Lat, Lon float64
	Country  string
}

// DB is a database of places. Make one with Open.
type DB struct {
	source interface {
		lookup(netip.Addr) (Place, bool)
	}
	digest string
	name   string
}

// Open reads the database at path: an mmdb file, or a folder that holds one
// file of country ranges (*-country-ipv4.csv, plain or gz) and one of centroids
// (country_latlng*.csv). The error wraps ErrDatabase, or is the file system's.
func Open(path string) (*DB, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("open geo database: %w", err)
	}
	if info.IsDir() {
		return openFolder(path)
	}
	return openMMDB(path)
}

// Lookup returns the place of an address; false if it is unknown. An IPv4
// address inside IPv6 is looked up as the IPv4 address.
func (d *DB) Lookup(addr netip.Addr) (Place, bool) {
	if !addr.IsValid() {
		return Place{}, false
	}
	return d.source.lookup(addr.Unmap().WithZone(""))
}

// Digest returns "sha256:…" of the database's content. Databases with the same
// digest give the same places.
func (d *DB) Digest() string { return d.digest }

// Name returns the path that the database was opened by.
func (d *DB) Name() string { return d.name }
