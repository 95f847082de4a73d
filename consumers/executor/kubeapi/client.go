package kubeapi

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// mostAnswer bounds an answer of the API server: an object is at most 1.5 MB, a list
// of endpoints or pods some.
const mostAnswer = 16 << 20

// Content types of patches.
const (
	JSONPatch  = "application/json-patch+json"  // RFC 6902
	MergePatch = "application/merge-patch+json" // RFC 7386
)

// Client asks an API server. It is safe for concurrent use.
type Client struct {
	base      *url.URL
	http      *http.Client
	tokenFile string
	timeout   time.Duration
}

// New returns a client of an API server, which need not be there yet. ErrOptions.
func New(o Options) (*Client, error) {
	base, err := url.Parse(o.URL)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || o.Timeout < 0 {
		return nil, fmt.Errorf("URL of the API server: got %.200q, expected http or https, and no negative timeout: %w", o.URL, ErrOptions)
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, IdleConnTimeout: 90 * time.Second, MaxIdleConnsPerHost: 4}
	if o.CAFile != "" {
		pem, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("CA file: %w: %w", ErrOptions, err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("CA file %s: expected certificates in PEM: %w", o.CAFile, ErrOptions)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	return &Client{
		base: base, tokenFile: o.TokenFile, timeout: cmp.Or(o.Timeout, 5*time.Second),
		http: &http.Client{
			Transport: transport,
			// A token goes to nobody else.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// Close closes idle connections to the API server.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Question is a request to the API server.
type Question struct {
	Method, Path string
	Query        url.Values
	// ContentType of the Body, which is sent as JSON; nil: none is.
	ContentType string
	Body        any
}

// said is the Status object with which an API server refuses.
type said struct {
	Message string `json:"message"`
	Details struct {
		Causes []struct {
			Field string `json:"field"`
		} `json:"causes"`
	} `json:"details"`
}

// Ask sends a request and decodes the answer. ErrUnreachable, ErrAbsent, ErrRefused,
// ErrConflict.
func (c *Client) Ask(ctx context.Context, q Question, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	r, err := c.request(ctx, q)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return fmt.Errorf("%w (%w)", ErrUnreachable, err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(io.LimitReader(resp.Body, mostAnswer))
	if err != nil {
		return fmt.Errorf("%w (%w)", ErrUnreachable, err)
	}
	what := q.Method + " " + q.Path
	if resp.StatusCode != http.StatusOK {
		return refusal(what, resp.StatusCode, b)
	}
	if err := json.Unmarshal(b, answer); err != nil {
		return fmt.Errorf("%s: %w: an answer that is not the API's (%w)", what, ErrUnreachable, err)
	}
	return nil
}

func (c *Client) request(ctx context.Context, q Question) (*http.Request, error) {
	u := c.base.JoinPath(q.Path)
	u.RawQuery = q.Query.Encode()
	var content io.Reader
	if q.Body != nil {
		b, err := json.Marshal(q.Body)
		if err != nil {
			return nil, fmt.Errorf("body of %s: %w", q.Path, err)
		}
		content = bytes.NewReader(b)
	}
	r, err := http.NewRequestWithContext(ctx, q.Method, u.String(), content)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", "penstock")
	if q.Body != nil {
		r.Header.Set("Content-Type", q.ContentType)
	}
	if c.tokenFile != "" {
		b, err := os.ReadFile(c.tokenFile)
		if err != nil {
			return nil, fmt.Errorf("%w (%w)", ErrUnreachable, err)
		}
		r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(b)))
	}
	return r, nil
}

// refusal makes an error of an answer that is none of success.
func refusal(what string, code int, body []byte) error {
	var s said
	text := ""
	if json.Unmarshal(body, &s) == nil {
		text = s.Message
	}
	kind := ErrRefused
	switch {
	case code == http.StatusNotFound:
		kind = ErrAbsent
	case code == http.StatusConflict:
		kind = ErrConflict
	case code == http.StatusUnprocessableEntity && len(s.Details.Causes) == 0:
		kind = ErrConflict // a test of the patch failed: nothing says what is wrong with it
	case code == http.StatusUnauthorized, code == http.StatusRequestTimeout, code == http.StatusTooManyRequests, code >= 500:
		kind = ErrUnreachable
	}
	return fmt.Errorf("%w: %s: %d %s: %.600s", kind, what, code, http.StatusText(code), text)
}
