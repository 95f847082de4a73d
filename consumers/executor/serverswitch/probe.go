package serverswitch

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// mostProbe is how much of the answer to a probe is read, for the connection to be kept.
const mostProbe = 64 << 10

// Probe makes a ready check, for Options.Ready. With a path, which may have a query, a server
// is ready if it answers GET there with 2xx; with none if it takes a connection. client must
// not follow redirects to elsewhere if that is not to count; nil: one that follows none.
func Probe(client *http.Client, path string) func(ctx context.Context, s Server) error {
	if client == nil {
		client = &http.Client{
			// A ready check asks a server that has just been started: nothing is kept of it.
			Transport:     &http.Transport{DisableKeepAlives: true},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	path, query, _ := strings.Cut(path, "?")
	return func(ctx context.Context, s Server) error {
		u, err := url.Parse(s.URL)
		if err != nil || u.Host == "" {
			return fmt.Errorf("URL of server %.80q: got %.200q, expected http or https: %w", s.Name, s.URL, ErrOptions)
		}
		if path == "" {
			return connects(ctx, u)
		}
		at := u.JoinPath(path)
		at.RawQuery = query
		return answers(ctx, client, at.String())
	}
}

// connects says whether somebody takes connections at a URL's host and port.
func connects(ctx context.Context, u *url.URL) error {
	port := u.Port()
	if port == "" {
		port = u.Scheme
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return fmt.Errorf("%w: %w", errNotReady, err)
	}
	_ = conn.Close()
	return nil
}

func answers(ctx context.Context, client *http.Client, at string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return fmt.Errorf("%w: %w", errNotReady, err)
	}
	r.Header.Set("User-Agent", "penstock")
	resp, err := client.Do(r)
	if err != nil {
		return fmt.Errorf("%w: %w", errNotReady, err)
	}
	_, _ = io.CopyN(io.Discard, resp.Body, mostProbe)
	_ = resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return fmt.Errorf("%w: %s answers %s", errNotReady, at, resp.Status)
	}
	return nil
}
