package geo

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"penstock/infra/shareddata"
)

const (
	rangesName    = "test-country-ipv4.csv"
	centroidsName = "country_latlng_test.csv"
	centroids     = "cca2,name,lat,lon\nCH,Switzerland,47,8\nDE,Germany,51,9\nFR,\"France, all of it\",46,2\n"
)

// folder makes a database of files by name.
func folder(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func packed(s string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(s))
	_ = z.Close()
	return b.String()
}

func countryAt(d *DB, addr string) string {
	p, ok := d.Lookup(netip.MustParseAddr(addr))
	if !ok {
		return "unknown"
	}
	return p.Country
}

func TestRanges(t *testing.T) {
	db, err := Open(folder(t, map[string]string{
		centroidsName: "\ufeff" + strings.ReplaceAll(centroids, "\n", "\r\n"),
		rangesName: strings.Join([]string{
			"0.0.0.0,0.0.0.255,FR",
			"10.0.0.0,10.0.255.255,CH",
			"10.0.1.0,10.0.1.255,DE",    // inside: the narrower one
			"10.0.2.0,10.0.2.255,DE",    // the same range twice: the last line
			"10.0.2.0,10.0.2.255,FR\r",  //
			"10.0.200.0,10.1.55.255,DE", // overlaps the end, narrower
			"20.0.0.0,20.0.0.9,XX",      // a country without a centroid
			"20.0.0.5,20.0.0.200,CH",    // wider than it
			"255.255.255.0,255.255.255.255,DE", "",
		}, "\n"),
	}))
	if err != nil {
		t.Fatal(err)
	}
	for addr, want := range map[string]string{
		"0.0.0.0": "FR", "0.0.0.255": "FR", "0.0.1.0": "unknown", "9.255.255.255": "unknown",
		"10.0.0.0": "CH", "10.0.0.255": "CH", "10.0.1.0": "DE", "10.0.1.255": "DE", "10.0.2.0": "FR", "10.0.3.0": "CH",
		"10.0.199.255": "CH", "10.0.200.0": "DE", "10.0.255.255": "DE", "10.1.55.255": "DE", "10.1.56.0": "unknown",
		"20.0.0.4": "unknown", "20.0.0.5": "unknown", "20.0.0.10": "CH", "20.0.0.201": "unknown",
		"255.255.255.255": "DE", "255.255.254.255": "unknown",
		"::ffff:10.0.1.7": "DE", "2001:db8::1": "unknown",
	} {
		if got := countryAt(db, addr); got != want {
			t.Errorf("%s: got %s, expected %s", addr, got, want)
		}
	}
	if p, _ := db.Lookup(netip.MustParseAddr("10.0.1.1")); p.Lat != 51 || p.Lon != 9 {
		t.Errorf("centroid of DE: %+v", p)
	}
	if _, ok := db.Lookup(netip.Addr{}); ok {
		t.Error("no address has a place")
	}
}

// The pieces agree with going through all ranges for each address.
func TestRangesAgreeWithASlowOracle(t *testing.T) {
	codes := []string{"CH", "DE", "FR", "XX"}
	rapid.Check(t, func(t *rapid.T) {
		known := map[string]Place{"CH": {Country: "CH"}, "DE": {Country: "DE"}, "FR": {Country: "FR"}}
		type line struct {
			first, last uint32
			code        string
		}
		var lines []line
		var text strings.Builder
		// Ranges lie around 0, around the middle and at the end.
		base := rapid.SampledFrom([]uint32{0, 1 << 31, 1<<32 - 64})
		for range rapid.IntRange(1, 12).Draw(t, "lines") {
			a := base.Draw(t, "base") + rapid.Uint32Range(0, 63).Draw(t, "first")
			b := base.Draw(t, "base") + rapid.Uint32Range(0, 63).Draw(t, "last")
			l := line{min(a, b), max(a, b), rapid.SampledFrom(codes).Draw(t, "code")}
			lines = append(lines, l)
			fmt.Fprintf(&text, "%s,%s,%s\n", addrOf(l.first), addrOf(l.last), l.code)
		}
		text.WriteString("1.0.0.0,1.0.0.0,CH\n") // at least one with a centroid
		lines = append(lines, line{1 << 24, 1 << 24, "CH"})
		table, err := readRanges("test", []byte(text.String()), known)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range []uint32{0, 1 << 31, 1<<32 - 64, 1<<31 - 64, 64} {
			for i := range uint32(64) {
				best, width := "unknown", uint64(1)<<33
				for _, l := range lines {
					if w := uint64(l.last) - uint64(l.first); l.first <= at+i && at+i <= l.last && w <= width {
						best, width = l.code, w
					}
				}
				if best == "XX" {
					best = "unknown"
				}
				if got := countryAt(&DB{source: table}, addrOf(at+i).String()); got != best {
					t.Fatalf("%s: got %s, expected %s in\n%s", addrOf(at+i), got, best, text.String())
				}
			}
		}
	})
}

func addrOf(v uint32) netip.Addr {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], v)
	return netip.AddrFrom4(b)
}

func TestFoldersThatCannotBeUsed(t *testing.T) {
	const good = "10.0.0.0,10.0.255.255,CH\n"
	for name, test := range map[string]struct {
		ranges, centroids, fault string
	}{
		"no address":        {good + "10.0.0,10.0.0.1,CH\n", centroids, `test-country-ipv4.csv line 2: got "10.0.0", expected an IPv4 address`},
		"IPv6":              {"::1,::2,CH\n", centroids, `line 1: got "::1", expected an IPv4 address`},
		"backwards":         {good + "\n10.0.0.9,10.0.0.1,CH\n", centroids, "line 3: got"},
		"two columns":       {"10.0.0.0,10.0.0.1\n", centroids, "first address,last address,country"},
		"four columns":      {"10.0.0.0,10.0.0.1,CH,x\n", centroids, `got "CH,x", expected a country code`},
		"small letters":     {"10.0.0.0,10.0.0.1,ch\n", centroids, "two capital letters"},
		"empty":             {"", centroids, "expected lines of first address"},
		"no centroid":       {"10.0.0.0,10.0.0.1,XX\n", centroids, "no country with a centroid"},
		"packed, cut":       {packed(strings.Repeat(good, 1000))[:40], centroids, "unexpected EOF"},
		"no header":         {good, "CH,Switzerland,47,8\n", "columns cca2, lat and lon"},
		"centroids empty":   {good, "", "EOF"},
		"country twice":     {good, centroids + "CH,Again,1,2\n", "line 5: got \"CH\", expected each country once"},
		"no latitude":       {good, centroids + "AT,Austria,,13\n", `line 5: got "", expected a latitude`},
		"latitude too far":  {good, centroids + "AT,Austria,147,13\n", "expected a latitude from -90 to 90"},
		"longitude no word": {good, centroids + "AT,Austria,47,NaN\n", "expected a longitude from -180 to 180"},
		"too few columns":   {good, centroids + "AT,Austria\n", "line 5: wrong number of fields"},
		"long code":         {good, centroids + "AUT,Austria,47,13\n", "expected a country code"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(folder(t, map[string]string{rangesName: test.ranges, centroidsName: test.centroids}))
			if !errors.Is(err, ErrDatabase) || !strings.Contains(err.Error(), test.fault) {
				t.Errorf("got %v, expected %s", err, test.fault)
			}
		})
	}
	for name, files := range map[string]map[string]string{
		"nothing":      {},
		"no centroids": {rangesName: good},
		"no ranges":    {centroidsName: centroids},
		"two of them":  {rangesName: good, "other-country-ipv4.csv": good, centroidsName: centroids},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Open(folder(t, files)); !errors.Is(err, ErrDatabase) || !strings.Contains(err.Error(), "expected one file") {
				t.Errorf("got %v", err)
			}
		})
	}
	if _, err := Open(filepath.Join(t.TempDir(), "gone")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestDigestIsOfContent(t *testing.T) {
	const ranges = "10.0.0.0,10.0.255.255,CH\n"
	digest := func(files map[string]string) string {
		db, err := Open(folder(t, files))
		if err != nil {
			t.Fatal(err)
		}
		return db.Digest()
	}
	a := digest(map[string]string{rangesName: ranges, centroidsName: centroids})
	if b := digest(map[string]string{"x-country-ipv4.csv.gz": packed(ranges), centroidsName: centroids}); a != b {
		t.Error("compression and names change the digest")
	}
	if b := digest(map[string]string{rangesName: ranges + "10.1.0.0,10.1.0.0,DE\n", centroidsName: centroids}); a == b {
		t.Error("another range, the same digest")
	}
	if b := digest(map[string]string{rangesName: ranges, centroidsName: centroids + "AT,Austria,47,13\n"}); a == b {
		t.Error("another centroid, the same digest")
	}
	if len(a) != len("sha256:")+64 {
		t.Errorf("digest %q", a)
	}
}

func TestTheWorld(t *testing.T) {
	db, err := Open(shareddata.Dir(t, "ip2country-cc0"))
	if err != nil {
		t.Fatal(err)
	}
	table, ok := db.source.(*ranges)
	if !ok || len(table.starts) < 300_000 || len(table.places) < 240 {
		t.Errorf("%d pieces, %d countries", len(table.starts), len(table.places))
	}
	for addr, want := range map[string]string{
		"1.0.0.1": "AU", "1.0.1.1": "CN", "8.8.8.8": "US", "193.0.6.139": "NL", "10.1.2.3": "unknown", "127.0.0.1": "unknown", "240.0.0.1": "unknown",
	} {
		if got := countryAt(db, addr); got != want {
			t.Errorf("%s: got %s, expected %s", addr, got, want)
		}
	}
	addr := netip.MustParseAddr("8.8.8.8")
	if n := testing.AllocsPerRun(100, func() { db.Lookup(addr) }); n > 0 {
		t.Errorf("%v allocations a lookup", n)
	}
}

func FuzzRanges(f *testing.F) {
	f.Add([]byte("1.0.0.0,1.0.0.255,CH\n1.0.0.0,2.0.0.0,DE\r\n"))
	f.Add([]byte("0.0.0.0,255.255.255.255,CH"))
	f.Add([]byte("1.0.0.0,1.0.0.255\n"))
	known := map[string]Place{"CH": {1, 2, "CH"}, "DE": {3, 4, "DE"}}
	f.Fuzz(func(t *testing.T, data []byte) {
		table, err := readRanges("fuzz", data, known)
		if err != nil {
			if !errors.Is(err, ErrDatabase) {
				t.Error(err)
			}
			return
		}
		for i := 1; i < len(table.starts); i++ {
			if table.starts[i-1] >= table.starts[i] || table.place[i-1] == table.place[i] {
				t.Fatalf("pieces %d and %d: %v %v", i-1, i, table.starts, table.place)
			}
		}
	})
}

func BenchmarkLookup(b *testing.B) {
	db, err := Open(shareddata.Dir(b, "ip2country-cc0"))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	i := uint32(0)
	for b.Loop() {
		i += 2654435761
		db.Lookup(addrOf(i))
	}
}
