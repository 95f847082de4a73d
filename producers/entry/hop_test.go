package entry_test

import (
	"net/http"
	"net/netip"
	"testing"

	"penstock/producers/entry"
	"penstock/producers/entry/identify"
)

// Who has served is who has served, whatever an entry point that is behind
// believes of the owner.
func TestAHopIsServedUnderTheNameOfItsSite(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ string, o *entry.Options) { o.Unknown = "site:c" })
	w.stores["b"].has["ada"], w.stores["b"].has["bea"] = true, true
	w.points["a"].places.set("ada", "b", 6)
	w.points["b"].places.set("ada", "c", 5)
	w.points["a"].places.set("bea", "b", 1) // b hasn't heard of her
	for path, want := range map[string]string{"/u/ada/x": "200 b v6 hops 1", "/u/bea/x": "200 b v1 hops 1"} {
		if got := get(t, w.points["a"].url+path); got.about() != want {
			t.Errorf("%s: got %s, expected %s", path, got.about(), want)
		}
	}
	for _, row := range w.points["a"].rows.await(t, 2) {
		if row.ToSite != "b" {
			t.Errorf("row %+v", row)
		}
	}
}

// Where there is no key a client behind a trusted proxy can write what a peer
// would: of that only counts what does no harm.
func TestWithoutAKeyAHopSaysNothingOfWhoAsks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ string, o *entry.Options) {
		o.PeerKey, o.TrustedProxies = nil, []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		o.User = []identify.Rule{{Claim: "sub"}}
		o.JWT = entry.JWT{Key: []byte("0123456789abcdef"), Required: true}
	})
	w.stores["a"].has["ada"] = true
	w.points["a"].places.set("ada", "a", 3)
	spoofed := []string{"Penstock-Hop", "b", "Penstock-User", "root", "Penstock-Owner", "ada", "Penstock-Version", "18446744073709551615"}
	if got := get(t, w.points["a"].url+"/u/ada/x", spoofed...); got.StatusCode != http.StatusUnauthorized || w.stores["a"].calls != 0 {
		t.Errorf("got %s", got.about())
	}
	w = newWorld(t, func(_ string, o *entry.Options) {
		o.PeerKey, o.TrustedProxies = nil, []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	})
	w.points["a"].places.set("ada", "b", 3)
	if got := get(t, w.points["a"].url+"/u/ada/x", append(spoofed, "Penstock-Owner", "bea")...); got.about() != "421 b v3 hops 0" {
		t.Errorf("got %s", got.about())
	}
	if site, version, _ := w.points["a"].places.Locate("ada"); site != "b" || version != 3 {
		t.Errorf("learnt %s %d", site, version)
	}
}

// OPTIONS * is about a server: there is no such path to be sent to.
func TestAServerIsAskedForNothingOfAnotherSite(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ string, o *entry.Options) { o.Answer = entry.Redirect })
	w.points["a"].places.set("ada", "b", 8)
	c := dial(t, w.points["a"])
	c.send(t, "OPTIONS * HTTP/1.1\r\nHost: a\r\nX-Owner: ada\r\n\r\n")
	if got := c.next(t, "OPTIONS"); got == nil || got.Header.Get("Location") != "" || got.StatusCode == http.StatusTemporaryRedirect {
		t.Errorf("got %+v", got)
	}
}
