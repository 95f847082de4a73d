package httphook

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"penstock/consumers/executor/serverswitch"
	"penstock/infra/clock"
)

var (
	// ErrOptions is returned by New for options that can't work.
	ErrOptions = errors.New("HTTP hook options")
	// ErrFailed is returned for a call that was not answered with 2xx in time. What it has
	// done is unknown.
	ErrFailed = errors.New("HTTP hook")
)

const (
	mostAnswer = 64 << 10
	mostText   = 200
	firstPause = 200 * time.Millisecond
	mostPause  = 5 * time.Second
)

// Options of a Backend.
type Options struct {
	// Client sends. Defaults to one that follows no redirects.
	Client *http.Client
	// Clock paces tries. Defaults to the machine's.
	Clock clock.Clock
	// StatusURL is asked what a server is. Empty: that can't be told.
	StatusURL string
	// Timeout of one switch with all its tries. 0: only the switch's.
	Timeout time.Duration
	// TokenFile holds a bearer token; it is read again for each request. Empty: none.
	TokenFile string
	// Tries of one call. Defaults to 3.
	Tries int
	// URL is called. Needed.
	URL string
}

// Backend calls a URL. It is safe for concurrent use.
type Backend struct{ o Options }

var _ serverswitch.Backend = (*Backend)(nil)

// New returns a backend. ErrOptions.
func New(o Options) (*Backend, error) {
	for _, at := range []string{o.URL, cmp.Or(o.StatusURL, o.URL)} {
		if u, err := url.Parse(at); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return nil, fmt.Errorf("URL: got %.200q, expected http or https: %w", at, ErrOptions)
		}
	}
	if o.Timeout < 0 || o.Tries < 0 {
		return nil, fmt.Errorf("expected no negative time or number: %w", ErrOptions)
	}
	o.Tries = cmp.Or(o.Tries, 3)
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	if o.Client == nil {
		o.Client = &http.Client{
			// Calls are minutes apart, and a connection of before may be dead.
			Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	return &Backend{o}, nil
}

// Name is http.
func (b *Backend) Name() string { return "http" }

// call is the body of a call.
type call struct {
	Version int    `json:"version"`
	Action  string `json:"action"`
	Site    string `json:"site"`
	Server  string `json:"server"`
	Zone    string `json:"zone,omitempty"`
	URL     string `json:"url,omitempty"`
	Epoch   uint64 `json:"epoch"`
}

// Switch calls the URL.
func (b *Backend) Switch(ctx context.Context, o serverswitch.Order) error {
	c := call{Version: 1, Action: "off", Site: o.Server.Site, Server: o.Server.Name, Zone: o.Server.Zone, URL: o.Server.URL, Epoch: o.Epoch}
	if o.On {
		c.Action = "on"
	}
	body, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFailed, err)
	}
	_, err = b.tries(ctx, func(ctx context.Context) (*http.Request, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, b.o.URL, bytes.NewReader(body))
		if err == nil {
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Idempotency-Key", strconv.Quote(o.Key)) // a string of structured fields
		}
		return r, err
	})
	return err
}

// Observe asks the status URL.
func (b *Backend) Observe(ctx context.Context, s serverswitch.Server) (serverswitch.Power, error) {
	if b.o.StatusURL == "" {
		return serverswitch.Unseen, nil
	}
	at := strings.NewReplacer("{server}", url.QueryEscape(s.Name), "{site}", url.QueryEscape(s.Site), "{zone}", url.QueryEscape(s.Zone)).Replace(b.o.StatusURL)
	body, err := b.tries(ctx, func(ctx context.Context) (*http.Request, error) {
		return http.NewRequestWithContext(ctx, http.MethodGet, at, http.NoBody)
	})
	if err != nil {
		return serverswitch.Unseen, err
	}
	var said struct {
		Power string `json:"power"`
	}
	if err := json.Unmarshal(body, &said); err != nil {
		return serverswitch.Unseen, fmt.Errorf("%w: status of %.80q: %w", ErrFailed, s.Name, err)
	}
	return map[string]serverswitch.Power{"on": serverswitch.PowerOn, "off": serverswitch.PowerOff}[said.Power], nil
}

// tries sends a request until it is answered with 2xx, and returns the body.
func (b *Backend) tries(ctx context.Context, request func(ctx context.Context) (*http.Request, error)) ([]byte, error) {
	if b.o.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, b.o.Timeout, fmt.Errorf("no answer in %v", b.o.Timeout))
		defer cancel()
	}
	pause := firstPause
	for try := 1; ; try++ {
		body, again, after, err := b.send(ctx, request)
		if err == nil {
			return body, nil
		}
		if !again || try == b.o.Tries || b.o.Clock.Sleep(ctx, max(pause, after)) != nil {
			if cause := context.Cause(ctx); cause != nil {
				err = fmt.Errorf("%w (%w)", err, cause)
			}
			return nil, fmt.Errorf("%w: try %d: %w", ErrFailed, try, err)
		}
		pause = min(2*pause, mostPause)
	}
}

// send sends one request; again says whether another may fare better, after a time.
func (b *Backend) send(ctx context.Context, request func(ctx context.Context) (*http.Request, error)) (body []byte, again bool, after time.Duration, err error) {
	r, err := request(ctx)
	if err != nil {
		return nil, false, 0, err
	}
	r.Header.Set("User-Agent", "penstock")
	if b.o.TokenFile != "" {
		token, err := os.ReadFile(b.o.TokenFile)
		if err != nil {
			return nil, true, 0, err
		}
		r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	resp, err := b.o.Client.Do(r)
	if err != nil {
		return nil, true, 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err = io.ReadAll(io.LimitReader(resp.Body, mostAnswer))
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		again, after = retried(resp)
		text := strings.Join(strings.Fields(strings.ToValidUTF8(string(body[:min(len(body), mostText)]), "")), " ")
		return nil, again, after, fmt.Errorf("answered %s: %s", resp.Status, text)
	}
	return body, true, 0, err
}

// retried says whether an answer is one to try again after, and when at the soonest.
func retried(resp *http.Response) (again bool, after time.Duration) {
	switch resp.StatusCode {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
	default:
		if resp.StatusCode < 500 {
			return false, 0
		}
	}
	if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && s > 0 {
		after = time.Duration(min(s, 3600)) * time.Second
	}
	return true, after
}
