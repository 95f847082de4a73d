package serverswitch

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestProbe of servers that take connections, answer well, badly, elsewhere, or not at all.
func TestProbe(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/base/health":
			_, _ = io.WriteString(w, "well")
		case "/asked":
			if r.URL.RawQuery != "of=all&now" {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		case "/base/moved":
			http.Redirect(w, r, "/base/health", http.StatusFound)
		default:
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	t.Cleanup(s.Close)
	for _, x := range []struct {
		path, url string
		ready     bool
	}{
		{"", s.URL, true},
		{"", closed.URL, false},
		{"/health", s.URL + "/base", true},
		{"health", s.URL + "/base/", true},
		{"/", s.URL, false},
		{"/asked?of=all&now", s.URL, true}, // as entry points ask it
		{"/asked", s.URL, false},
		{"/moved", s.URL + "/base", false},
		{"/health", closed.URL, false},
		{"/health", "", false},
		{"", ":", false},
	} {
		err := Probe(nil, x.path)(t.Context(), Server{Name: "a", URL: x.url})
		if (err == nil) != x.ready || err != nil && !errors.Is(err, errNotReady) && !errors.Is(err, ErrOptions) {
			t.Errorf("%q at %q: %v", x.path, x.url, err)
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	for _, path := range []string{"", "/base/health"} {
		if Probe(http.DefaultClient, path)(ended, Server{URL: s.URL}) == nil {
			t.Errorf("%q: ready after the end", path)
		}
	}
	// Without a port it is the scheme's.
	if err := Probe(nil, "")(ended, Server{URL: "http://127.0.0.1"}); !errors.Is(err, errNotReady) {
		t.Error(err)
	}
}
