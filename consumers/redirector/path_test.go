package redirector

import (
	"bufio"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func TestTargets(t *testing.T) {
	for _, c := range []struct {
		uri, what, owner, rest string
		err                    error
	}{
		{"/v1/locations", whatBatch, "", "", nil},
		{"/v1/locations?x=1", whatBatch, "", "", nil},
		{"/v1/locations/ann", whatLocation, "ann", "", nil},
		{"/v1/locations/ann?x=/r/bob", whatLocation, "ann", "", nil},
		{"/v1/locations/a%40b.c", whatLocation, "a@b.c", "", nil},
		{"/v1/locations/a@b.c", whatLocation, "a@b.c", "", nil},
		{"/v1/locations/a+b%20c", whatLocation, "a+b c", "", nil},
		{"/v1/locations/%2Fvar%2Flog", whatLocation, "/var/log", "", nil},
		{"/v1/locations/%00%ff%0d%0a", whatLocation, "\x00\xff\r\n", "", nil},
		{"/v1/locations/2001:db8::1", whatLocation, "2001:db8::1", "", nil},
		{"/v1/locations/..", whatLocation, "..", "", nil},
		{"/v1/locations/%25", whatLocation, "%", "", nil},
		{"/v1/locations/" + strings.Repeat("x", 1024), whatLocation, strings.Repeat("x", 1024), "", nil},
		{"/v1/locations/" + strings.Repeat("x", 1025), whatLocation, "", "", errOwner},
		{"/v1/locations/", whatLocation, "", "", errOwner},
		{"/v1/locations/a/b", whatLocation, "", "", errOwner},
		{"/v1/locations/%", whatLocation, "", "", errOwner},
		{"/v1/locations/%4", whatLocation, "", "", errOwner},
		{"http://x.y/v1/locations/ann", whatLocation, "ann", "", nil},
		{"http://x.y", whatNone, "", "", errPath},
		{"http://x.y?/r/a", whatNone, "", "", errPath},
		{"*", whatNone, "", "", errPath},
		{"", whatNone, "", "", errPath},
		{"/", whatNone, "", "", errPath},
		{"//r/ann", whatNone, "", "", errPath},
		{"/r", whatNone, "", "", errPath},
		{"/R/ann", whatNone, "", "", errPath},
		{"/v1/locationsX", whatNone, "", "", errPath},
		{"/r/", whatRedirect, "", "", errOwner},
		{"/r//x", whatRedirect, "", "", errOwner},
		{"/r/ann", whatRedirect, "ann", "", nil},
		{"/r/ann?", whatRedirect, "ann", "?", nil},
		{"/r/ann?a=b&c=%0d%0a", whatRedirect, "ann", "?a=b&c=%0d%0a", nil},
		{"/r/ann/", whatRedirect, "ann", "/", nil},
		{"/r/ann/u/ann/notes?x=1?2", whatRedirect, "ann", "/u/ann/notes?x=1?2", nil},
		{"/r/a%2Fb/u/a%2Fb/n", whatRedirect, "a/b", "/u/a%2Fb/n", nil},
		{"/r/ann//evil.example/x", whatRedirect, "ann", "//evil.example/x", nil},
		{"/r/ann/@evil.example", whatRedirect, "ann", "/@evil.example", nil},
		{"/r/ann/\\evil", whatRedirect, "ann", "/%5Cevil", nil},
		{"/r/a%2Fb/x\\y", whatRedirect, "a/b", "/x%5Cy", nil},
		{"/r/ann/é?é#x", whatRedirect, "ann", "/%C3%A9?%C3%A9%23x", nil},
		{"/r/ann/x#y", whatRedirect, "ann", "/x%23y", nil},
		{"/r/ann/...", whatRedirect, "ann", "/...", nil},
		{"/r/ann/.hidden/a..b", whatRedirect, "ann", "/.hidden/a..b", nil},
		{"/r/ann?x=../..", whatRedirect, "ann", "?x=../..", nil},
		{"/r/ann/..", whatRedirect, "ann", "", errDots},
		{"/r/ann/./x", whatRedirect, "ann", "", errDots},
		{"/r/ann/x/%2e%2E/y", whatRedirect, "ann", "", errDots},
		{"/r/ann/x/.%2e/y", whatRedirect, "ann", "", errDots},
		{"/r/ann/%252e%252e/y", whatRedirect, "ann", "", errDots},
		{"/r/ann/a%2f..%2fb", whatRedirect, "ann", "", errDots},
		{"/r/ann/a\\..\\b", whatRedirect, "ann", "", errDots},
		{"/r/ann/..;x=1/b", whatRedirect, "ann", "", errDots},
		{"/r/ann/%zz", whatRedirect, "ann", "", errPath},
	} {
		got, err := parse(c.uri)
		if !errors.Is(err, c.err) || got.what != c.what {
			t.Errorf("%.60q: %+v, %v, expected %s, %v", c.uri, got, err, c.what, c.err)
		}
		if err == nil && (got.owner != c.owner || got.rest != c.rest) {
			t.Errorf("%.60q: got %.60q and %q, expected %.60q and %q", c.uri, got.owner, got.rest, c.owner, c.rest)
		}
	}
}

// FuzzRedirect: whatever is asked for, a Location is one line of a header, names
// the site and nothing else as its host, keeps below the site's path, is itself a
// URL that clients resolve to what it says, and has the query that was sent.
func FuzzRedirect(f *testing.F) {
	for _, s := range []string{
		"/r/ann/x?y", "/r/a//b", "/r/a/../b", "/r/a/%2e%2e/b", "/r/a/\\b", "/r/a/@x", "/r/a?@x", "/r/a/x\r\nSet-Cookie: a=b", "/r/a/é",
		"http://evil/r/a/b", "/r/%2F%2Fevil/x", "/r/a;//evil", "/r/a/x#f", "/r/a/:80", "/r/a:80",
	} {
		f.Add(s)
	}
	bases := []string{"http://site.example", "https://site.example:8443/base/path"}
	f.Fuzz(func(t *testing.T, uri string) {
		got, err := parse(uri)
		if err != nil || got.what != whatRedirect {
			return
		}
		if got.owner == "" || len(got.owner) > maxOwner {
			t.Errorf("%q: owner %q", uri, got.owner)
		}
		for _, base := range bases {
			l := location(base, got.rest)
			for i := range len(l) {
				if l[i] <= ' ' || l[i] >= 0x7f {
					t.Fatalf("%q: byte %#x in %q", uri, l[i], l)
				}
			}
			u, err := url.Parse(l)
			if err != nil {
				if strings.Contains(got.rest, "?") { // a query may have a lone %
					continue
				}
				t.Fatalf("%q: %q: %v", uri, l, err)
			}
			want, _ := url.Parse(base)
			if u.Host != want.Host || u.Scheme != want.Scheme || u.User != nil || u.Fragment != "" {
				t.Fatalf("%q: %q leads to %s", uri, l, u.Host)
			}
			// What a client asks for when it resolves the Location.
			to := want.ResolveReference(u)
			if to.Host != want.Host || !strings.HasPrefix(to.EscapedPath()+"/", want.EscapedPath()+"/") {
				t.Fatalf("%q: %q resolves to %s", uri, l, to)
			}
			if req, err := http.ReadRequest(bufio.NewReader(strings.NewReader("GET " + to.RequestURI() + " HTTP/1.1\r\nHost: x\r\n\r\n"))); err != nil || req.Header.Get("Set-Cookie") != "" {
				t.Fatalf("%q: %q can't be asked for: %v", uri, l, err)
			}
		}
		if again, err := parse("/r/" + url.PathEscape(got.owner) + got.rest); err != nil || again.owner != got.owner || again.rest != got.rest {
			t.Fatalf("%q: %q %q, then %q %q, %v", uri, got.owner, got.rest, again.owner, again.rest, err)
		}
	})
}
