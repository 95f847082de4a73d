package identify

import (
	"errors"
	"net/url"
	"path"
	"strings"
	"testing"
)

func TestNormal(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"/u/alice/x": "/u/alice/x", "/": "/", "/u/%61lice": "/u/alice", "/u/a%20b": "/u/a%20b", "/u/a%2fb": "/u/a%2Fb", "/a//b": "/a//b", "//a": "//a", "/a//../b": "/b", "//../a": "/a", "/a//": "/a//", "/a//./b": "/a//b",
		"/a/./b": "/a/b", "/a/../b": "/b", "/../b": "/b", "/a/b/..": "/a", "/a/b/../": "/a/", "/a/%2e%2e/b": "/b", "/a/.b": "/a/.b", "/a/..b": "/a/..b",
		"/a/": "/a/", "/.": "/", "/%7Eada": "/~ada", "/%e4": "/%E4", "*": "*", "/x/../u/alice/": "/u/alice/",
	} {
		if got := Normal(in); got != want {
			t.Errorf("%s: got %s, expected %s", in, got, want)
		}
	}
}

func TestPatterns(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		pattern, path, taken string
		ok                   bool
	}{
		{"/u/{owner}/**", "/u/alice/x/y", "alice", true},
		{"/u/{owner}/**", "/u/alice", "alice", true},
		{"/u/{owner}/**", "/u/alice/", "alice", true},
		{"/u/{owner}/**", "/u/", "", false},
		{"/u/{owner}/**", "/v/alice/x", "", false},
		{"/u/{owner}", "/u/alice/x", "", false},
		{"/u/{owner}", "/u/alice/", "alice", true},
		{"/{owner}/**", "/blog/2015", "blog", true},
		{"/{owner}/**", "/", "", false},
		{"/~{owner}/**", "/~ada/x", "ada", true},
		{"/%7e{owner}/**", "/~ada/x", "", false},
		{"/{owner}.json", "/ada.json", "ada", true},
		{"/{owner}.json", "/.json", "", false},
		{"/a{owner}a", "/a", "", false},
		{"/a{owner}a", "/aa", "", false},
		{"/a{owner}a", "/aba", "b", true},
		{"/{owner:2}/**", "/blog/2015/x", "blog/2015", true},
		{"/{owner:2}/**", "/blog", "blog", true},
		{"/{owner:2}", "/blog/2015/x", "", false},
		{"/{owner:2}/x", "/a/b/x", "a/b", true},
		{"/*/x/{owner}", "/any/x/ada", "ada", true},
		{"/static/**", "/static", "", true},
		{"/static/**", "/statics", "", false},
		{"/%61/**", "/a/b", "", true},
		{"/**", "/", "", true},
		{"/", "/", "", true},
		{"/", "/a", "", false},
		{"/u/{owner}", "*", "", false}, // of OPTIONS *
		{"/u/{owner}", "u/ada", "", false},
		{"/u/{owner}", "//", "", false},
		// Where a name would stand is nothing: it is nobody's, however a service reads it.
		{"/u/{owner}/**", "/u//x", "", false},
		{"/u/{owner}", "/u//ada", "", false},
		{"/{owner}/**", "//x", "", false},
		{"/{owner:2}/**", "/a//b", "", false},
		{"/{owner:2}/**", "/a//", "a", true},
		{"/{owner:2}/**", "/a/", "a", true},
		{"/u/{owner}/**", "//u/ada/x", "ada", true},
		{"/u/{owner}/x", "/u/ada//x", "ada", true},
		{"/u/{owner}", "/u/ada//", "ada", true},
		{"/*/{owner}", "//u/ada", "ada", true},
	} {
		p, err := CompilePattern(test.pattern, "owner")
		if err != nil {
			t.Errorf("%s: %v", test.pattern, err)
			continue
		}
		if taken, ok := p.Match(test.path); taken != test.taken || ok != test.ok {
			t.Errorf("%s of %s: got %q %v, expected %q %v", test.pattern, test.path, taken, ok, test.taken, test.ok)
		}
	}
	for _, pattern := range []string{
		"", "u/{owner}", "/**/x", "/a*", "/{owner}{owner}", "/{owner}/{owner}", "/{user}", "/{owner", "/owner}", "/}{", "/{owner:0}", "/{owner:x}", "/a{owner:2}", "/{}", "/a//b", "/{owner:101}",
	} {
		if _, err := CompilePattern(pattern, "owner"); !errors.Is(err, ErrRule) {
			t.Errorf("%s: %v", pattern, err)
		}
	}
}

// slowMatch is the meaning of a pattern without captures of several segments,
// over lists.
func slowMatch(pattern, p string) (string, bool) {
	want := strings.FieldsFunc(pattern, func(r rune) bool { return r == '/' })
	have, taken := strings.Split(p[1:], "/"), ""
	for _, w := range want {
		if w == "**" {
			return taken, true
		}
		before, rest, captures := strings.Cut(w, "{owner}")
		for !captures && len(have) > 0 && have[0] == "" {
			have = have[1:]
		}
		if len(have) == 0 {
			return "", false
		}
		segment := have[0]
		have = have[1:]
		if captures {
			inner, ok1 := strings.CutPrefix(segment, before)
			inner, ok2 := strings.CutSuffix(inner, rest)
			if !ok1 || !ok2 || inner == "" {
				return "", false
			}
			taken = inner
		} else if w != "*" && w != segment {
			return "", false
		}
	}
	return taken, strings.Join(have, "") == ""
}

func FuzzPattern(f *testing.F) {
	f.Add("/u/{owner}/**", "/u/alice/x")
	f.Add("/a{owner}b/*", "/aab/c/")
	f.Add("/{owner:3}/x", "/a/b/x")
	f.Add("/%61/..", "/b/../a/%2e%2E")
	f.Add("/u/{owner}/**", "/u//x/..//../y")
	f.Fuzz(func(t *testing.T, pattern, target string) {
		normal := Normal("/" + target)
		if Normal(normal) != normal && !strings.Contains(normal, "%25") {
			t.Errorf("%q: %q is not normal", target, normal)
		}
		if strings.Contains(normal, "/./") || strings.Contains(normal, "/../") {
			t.Errorf("%q: %q", target, normal)
		}
		// Where net/url can read it, both are names of one thing.
		if u, err := url.PathUnescape("/" + target); err == nil && !strings.Contains(strings.ToLower(target), "%2f") {
			if got, err := url.PathUnescape(normal); err != nil || path.Clean(got) != path.Clean(u) {
				t.Errorf("%q: %q is another path than %q", target, got, u)
			}
		}
		p, err := CompilePattern(pattern, "owner")
		if err != nil {
			if !errors.Is(err, ErrRule) {
				t.Error(err)
			}
			return
		}
		taken, ok := p.Match(normal)
		if !ok && taken != "" || len(taken) > len(normal) {
			t.Errorf("%s of %s: %q %v", pattern, normal, taken, ok)
		}
		if strings.ContainsAny(pattern, ":%.") {
			return
		}
		if want, is := slowMatch(pattern, normal); want != taken && is || is != ok {
			t.Errorf("%s of %s: got %q %v, expected %q %v", pattern, normal, taken, ok, want, is)
		}
	})
}
