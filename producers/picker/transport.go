package picker

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// Headers that say who calls whom. The callee's entry point believes them.
const (
	headerComponent = "Penstock-Component"
	headerTo        = "Penstock-To"
)

type keyed struct{}

// WithKey makes requests with the context go where PickFor sends the key.
func WithKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, keyed{}, key)
}

// transport resolves the names of components.
type transport struct {
	p    *Picker
	base http.RoundTripper
}

// Transport returns a RoundTripper that sends requests for http://COMPONENT/… to a
// server of that component: requests that write to the site for writes, those with
// WithKey where their key belongs. A component is a host without a dot and a port,
// other than localhost; requests for other hosts go to base as they are, which
// defaults to http.DefaultTransport. The server sees COMPONENT as Host, the caller in
// Penstock-Component and the callee in Penstock-To.
//
// Where nothing listens at a server the request goes to another one, once, for
// nothing was sent; nothing else is tried again. An answer of 502, 503 or 504 counts
// as a failure of the server.
func (p *Picker) Transport(base http.RoundTripper) http.RoundTripper {
	if base == nil {
		base = http.DefaultTransport
	}
	return &transport{p, base}
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	component, ours := component(r.URL)
	if !ours {
		return t.base.RoundTrip(r)
	}
	c := t.p.choose(component, r)
	if c.server == nil {
		if r.Body != nil {
			_ = r.Body.Close() // Nothing of it is sent.
		}
		return nil, fmt.Errorf("%.80q at %.80q: %w", component, c.Site, ErrNoServer)
	}
	res, err := t.send(r, c, component)
	if err == nil || !gone(err) || r.Context().Err() != nil {
		return res, err
	}
	other := t.p.choose(component, r)
	if other.server == nil || other.server == c.server {
		return nil, err
	}
	again := r.Clone(r.Context())
	if r.Body != nil && r.Body != http.NoBody {
		if r.GetBody == nil {
			return nil, err
		}
		body, bodyErr := r.GetBody()
		if bodyErr != nil {
			return nil, err
		}
		again.Body = body
	}
	return t.send(again, other, component)
}

// choose picks for a request.
func (p *Picker) choose(component string, r *http.Request) Choice {
	key, _ := r.Context().Value(keyed{}).(string)
	switch r.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return p.of(component).choose(key, false)
	default:
		return p.of(component).choose(key, true)
	}
}

// send sends a request to a server, and notes how it went.
func (t *transport) send(r *http.Request, c Choice, component string) (*http.Response, error) {
	out := r.WithContext(r.Context()) // a copy: what it shares is not changed
	out.Header = r.Header.Clone()
	if out.Header == nil {
		out.Header = http.Header{}
	}
	out.Header.Set(headerComponent, t.p.o.Component)
	out.Header.Set(headerTo, component)
	if out.Host == "" {
		out.Host = r.URL.Host
	}
	out.URL = at(c.server.base, r.URL)
	res, err := t.base.RoundTrip(out)
	switch {
	case err != nil && errors.Is(r.Context().Err(), context.Canceled): // the client went away
		c.Done(context.Canceled)
	case err != nil:
		c.Done(err)
	case res.StatusCode == http.StatusBadGateway, res.StatusCode == http.StatusServiceUnavailable, res.StatusCode == http.StatusGatewayTimeout:
		c.Done(errStatus)
	default:
		c.Done(nil)
	}
	return res, err
}

// component is the one that a URL names, if it does.
func component(u *url.URL) (name string, ours bool) {
	host := u.Host
	if u.Scheme != "http" || host == "" || host == "localhost" || strings.ContainsAny(host, ".:") {
		return "", false
	}
	return host, true
}

// at is a URL at a server.
func at(base, u *url.URL) *url.URL {
	out := *u
	out.Scheme, out.Host = base.Scheme, base.Host
	if base.Path != "" {
		out.Path, out.RawPath = base.Path+u.Path, base.EscapedPath()+u.EscapedPath()
	}
	return &out
}
