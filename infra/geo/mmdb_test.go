package geo

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"penstock/infra/shareddata"
)

func TestMMDB(t *testing.T) {
	dir := shareddata.Dir(t, "maxmind-testdb")
	db, err := Open(filepath.Join(dir, "GeoLite2-City-Test.mmdb"))
	if err != nil {
		t.Fatal(err)
	}
	for addr, want := range map[string]Place{
		"81.2.69.142":          {51.5142, -0.0931, "GB"},
		"::ffff:81.2.69.142":   {51.5142, -0.0931, "GB"},
		"89.160.20.112":        {58.4167, 15.6167, "SE"},
		"2.125.160.216":        {51.75, -1.25, "GB"},
		"2001:218::1":          {35.68536, 139.75309, "JP"},
		"2001:218::1%ignored0": {35.68536, 139.75309, "JP"},
	} {
		if got, ok := db.Lookup(netip.MustParseAddr(addr)); !ok || got != want {
			t.Errorf("%s: got %+v, %v, expected %+v", addr, got, ok, want)
		}
	}
	for _, addr := range []string{"127.0.0.1", "10.0.0.1", "::1", "0.0.0.0"} {
		if got, ok := db.Lookup(netip.MustParseAddr(addr)); ok {
			t.Errorf("%s: got %+v, expected unknown", addr, got)
		}
	}
	addr := netip.MustParseAddr("81.2.69.142")
	if n := testing.AllocsPerRun(100, func() { db.Lookup(addr) }); n > 0 {
		t.Errorf("%v allocations a lookup", n)
	}
}

func TestMMDBOfCountries(t *testing.T) {
	file := filepath.Join(shareddata.Dir(t, "maxmind-testdb"), "GeoLite2-Country-Test.mmdb")
	if _, err := Open(file); !errors.Is(err, ErrDatabase) || !strings.Contains(err.Error(), "country_latlng*.csv beside it") {
		t.Errorf("without centroids: %v", err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	dir := folder(t, map[string]string{centroidsName: centroids + "SE,Sweden,62,15\n", "countries.mmdb": string(data)})
	db, err := Open(filepath.Join(dir, "countries.mmdb"))
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := db.Lookup(netip.MustParseAddr("89.160.20.112")); !ok || got != (Place{62, 15, "SE"}) {
		t.Errorf("got %+v, %v", got, ok)
	}
	// No centroid of that country: unknown, not 0,0.
	if got, ok := db.Lookup(netip.MustParseAddr("2.125.160.216")); ok {
		t.Errorf("got %+v, expected unknown", got)
	}
}

func TestMMDBsThatCannotBeUsed(t *testing.T) {
	dir := shareddata.Dir(t, "maxmind-testdb")
	data, err := os.ReadFile(filepath.Join(dir, "GeoLite2-City-Test.mmdb"))
	if err != nil {
		t.Fatal(err)
	}
	write := func(b []byte) string {
		file := filepath.Join(t.TempDir(), "x.mmdb")
		if err := os.WriteFile(file, b, 0o644); err != nil {
			t.Fatal(err)
		}
		return file
	}
	for name, b := range map[string][]byte{
		"empty": {}, "text": []byte("1.0.0.0,1.0.0.255,CH\n"), "cut": data[:len(data)/2], "without tree": data[len(data)/2:],
	} {
		if _, err := Open(write(b)); !errors.Is(err, ErrDatabase) || !strings.Contains(err.Error(), "x.mmdb") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := Open(filepath.Join(dir, "GeoLite2-ASN-Test.mmdb")); !errors.Is(err, ErrDatabase) {
		t.Errorf("a database without places: %v", err)
	}
	// Damage anywhere gives an error or a database, never a panic.
	for at := 0; at < len(data); at += 97 {
		b := append([]byte{}, data...)
		b[at] ^= 0x55
		db, err := Open(write(b))
		if err != nil {
			if !errors.Is(err, ErrDatabase) {
				t.Errorf("byte %d: %v", at, err)
			}
			continue
		}
		db.Lookup(netip.MustParseAddr("81.2.69.142"))
		db.Lookup(netip.MustParseAddr("2001:218::1"))
	}
}
