package pseudonym_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/netip"
	"sync"
	"testing"

	"penstock/infra/pseudonym"
)

var key = []byte("a key of tests")

func slow(s string) string {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(s))
	return hex.EncodeToString(m.Sum(nil)[:16])
}

func TestOneClientIsOnePseudonym(t *testing.T) {
	h, err := pseudonym.New(key)
	if err != nil {
		t.Fatal(err)
	}
	for host, as := range map[string]string{
		"192.0.2.7":                     "192.0.2.7",
		"::ffff:192.0.2.7":              "192.0.2.7",
		"2001:DB8:0:0::1":               "2001:db8::1",
		"fe80::1%eth0":                  "fe80::1",
		"Host.Example":                  "host.example",
		"not.an.address:80":             "not.an.address:80",
		"1.2.3":                         "1.2.3",
		"0:0:0:0:0:FFFF:129.144.52.038": "0:0:0:0:0:ffff:129.144.52.038", // a zero in front: no address
	} {
		if got := h.Client(host); got != slow(as) {
			t.Errorf("%s: %s is not the pseudonym of %s", host, got, as)
		}
		if a, err := netip.ParseAddr(host); err == nil && h.Address(a) != slow(as) {
			t.Errorf("address %s differs", host)
		}
	}
	if h.Text("Ada") == h.Text("ada") {
		t.Error("texts that differ have one pseudonym")
	}
	if len(h.Text("")) != pseudonym.Length {
		t.Error("length")
	}
}

func TestNoKeyNoHasher(t *testing.T) {
	if _, err := pseudonym.New(nil); !errors.Is(err, pseudonym.ErrNoKey) {
		t.Fatal(err)
	}
}

func TestManyAtOnce(t *testing.T) {
	h, _ := pseudonym.New(key)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range byte(200) {
				a := netip.AddrFrom4([4]byte{10, 0, 0, i})
				if h.Address(a) != slow(a.String()) {
					t.Error(a)
				}
			}
		})
	}
	all.Wait()
}

func BenchmarkAddress(b *testing.B) {
	h, _ := pseudonym.New(key)
	a := netip.MustParseAddr("192.0.2.7")
	b.ReportAllocs()
	for b.Loop() {
		h.Address(a)
	}
}
