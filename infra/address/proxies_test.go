package address

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"
)

func TestForwardedFields(t *testing.T) {
	t.Parallel()
	trusted := Proxies{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::/32")}
	for _, test := range []struct {
		header, value, want string
	}{
		{"X-Forwarded-For", "192.0.2.1", "192.0.2.1"},
		{"X-Forwarded-For", "1.1.1.1, 192.0.2.1, 10.1.1.1", "192.0.2.1"},
		{"X-Forwarded-For", "10.2.2.2, 10.1.1.1", "10.2.2.2"},
		{"X-Forwarded-For", "192.0.2.1:4711", "192.0.2.1"},
		{"X-Forwarded-For", "[2001:db9::1]:4711", "2001:db9::1"},
		{"X-Forwarded-For", "2001:db9::1", "2001:db9::1"},
		{"X-Forwarded-For", "::ffff:192.0.2.1", "192.0.2.1"},
		{"X-Forwarded-For", "192.0.2.1, unknown, 10.1.1.1", "10.1.1.1"},
		{"X-Forwarded-For", "192.0.2.1, ", "10.0.0.1"},
		{"X-Forwarded-For", "192.0.2.1:x", "10.0.0.1"},
		{"X-Forwarded-For", "", "10.0.0.1"},
		{"X-Forwarded-For", "fe80::1%eth0", "fe80::1"},
		{"X-Forwarded-For", "192.0.2.1|10.1.1.1", "192.0.2.1"}, // | parts lines here
		{"Forwarded", "for=192.0.2.1", "192.0.2.1"},
		{"Forwarded", `For="[2001:db9::1]:4711";proto=http;by=10.1.1.1`, "2001:db9::1"},
		{"Forwarded", `for=1.1.1.1, proto=https;for="192.0.2.1", for=10.1.1.1`, "192.0.2.1"},
		{"Forwarded", `for=_hidden, for=10.1.1.1`, "10.1.1.1"},
		{"Forwarded", `for=192.0.2.1;host="a, for=6.6.6.6"`, "192.0.2.1"},
		{"Forwarded", `for=1.1.1.1, for="192.0.2.1`, "10.0.0.1"},
		{"Forwarded", `host="for=1.1.1.1`, "10.0.0.1"},
		{"Forwarded", `"for=6.6.6.6, for=192.0.2.1`, "192.0.2.1"},
		{"Forwarded", `for="x, for="192.0.2.1"`, "192.0.2.1"},
		{"Forwarded", `for=1.1.1.1, for="a\", 6.6.6.6"`, "10.0.0.1"},
		{"Forwarded", "", "10.0.0.1"},
	} {
		h := http.Header{test.header: strings.Split(test.value, "|")}
		if got := trusted.Client(h, netip.MustParseAddr("10.0.0.1"), false); got.String() != test.want {
			t.Errorf("%s: %s: got %s, expected %s", test.header, test.value, got, test.want)
		}
	}
	both := http.Header{"X-Forwarded-For": {"192.0.2.1"}, "Forwarded": {"for=192.0.2.2"}}
	for only, want := range map[bool]string{false: "192.0.2.1", true: "192.0.2.2"} {
		if got := trusted.Client(both, netip.MustParseAddr("10.0.0.1"), only); got.String() != want {
			t.Errorf("%v: %s", only, got)
		}
	}
}

// FuzzForwarded looks for what moves the client to the left of an address that
// nobody trusts.
func FuzzForwarded(f *testing.F) {
	f.Add("1.1.1.1, 10.1.1.1", `for="[::1]:80";by=x, for=_x`)
	f.Add(`"`, `for="a\", for=1.1.1.1`)
	trusted := Proxies{netip.MustParsePrefix("10.0.0.0/8")}
	remote := netip.MustParseAddr("10.0.0.1")
	f.Fuzz(func(t *testing.T, list, forwarded string) {
		for _, h := range []http.Header{{"X-Forwarded-For": {list}}, {"Forwarded": {forwarded}}} {
			if a := trusted.Client(h, remote, false); !a.IsValid() || a.Zone() != "" || a.Is4In6() {
				t.Errorf("%v: %s", h, a)
			}
		}
		// What a client writes, to which the proxy adds an element, doesn't matter.
		if a := trusted.Client(http.Header{"X-Forwarded-For": {list + ", 192.0.2.1"}}, remote, false); a.String() != "192.0.2.1" {
			t.Errorf("%q: %s", list, a)
		}
		for _, added := range []string{"for=192.0.2.1", `for="192.0.2.1";proto=http`} {
			if a := trusted.Client(http.Header{"Forwarded": {forwarded + ", " + added}}, remote, false); a.String() != "192.0.2.1" {
				t.Errorf("%q, to which %s was added: %s", forwarded, added, a)
			}
		}
		if a := trusted.Client(http.Header{"X-Forwarded-For": {list, "192.0.2.1"}}, remote, false); a.String() != "192.0.2.1" {
			t.Errorf("%q in a line of its own: %s", list, a)
		}
	})
}
