// Package geo says where a network address is (DESIGN §3.1 lat, lon; §5
// --geoip). It reads two kinds of databases: an mmdb file with positions, and
// a folder with the country of each range of addresses and each country's
// centroid.
//
// A [DB] is read once, whole, and never changes: it is safe for concurrent use
// and a lookup allocates nothing.
//
// Failures: a database that cannot be read in full is refused with the file,
// the line and what was expected there. An address that it does not know is
// unknown; it is never at 0,0.
package geo
