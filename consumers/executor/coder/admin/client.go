package admin

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"penstock/consumers/executor/coder"
)

// Client asks a coder's admin server.
type Client struct {
	// Addr is host:port, or a URL without a path.
	Addr string
	// Token is sent if it isn't empty.
	Token string
	// HTTP, if any, is used in place of http.DefaultClient. It has no timeout: a scrub
	// takes as long as it takes.
	HTTP *http.Client
}

// maxAnswer bounds what is read of an answer, or of a line of one: a report names many
// versions, whose keys may be long.
const maxAnswer = 16 << 20

// Status returns what the coder is at. The error wraps ErrRefused if it says no.
func (c *Client) Status(ctx context.Context) (s Status, err error) {
	res, err := c.do(ctx, http.MethodGet, "/v1/status")
	if err != nil {
		return s, err
	}
	defer func() { _ = res.Body.Close() }()
	if err := json.NewDecoder(io.LimitReader(res.Body, maxAnswer)).Decode(&s); err != nil {
		return s, fmt.Errorf("status of a coder: %w", err)
	}
	return s, nil
}

// Healthy returns nil if the coder answers.
func (c *Client) Healthy(ctx context.Context) error {
	res, err := c.do(ctx, http.MethodGet, "/healthz")
	if err != nil {
		return err
	}
	return res.Body.Close()
}

// Scrub has the coder scrubbed, tells how far it is, if tell isn't nil, and returns what
// was found. It returns ErrRefused, ErrFailed, with a report of what was done until then,
// and ErrCut. The end of ctx ends the scrub.
func (c *Client) Scrub(ctx context.Context, o coder.ScrubOptions, tell func(Progress)) (coder.Report, error) {
	res, err := c.do(ctx, http.MethodPost, "/v1/scrub?"+query(o).Encode())
	if err != nil {
		return coder.Report{}, err
	}
	defer func() { _ = res.Body.Close() }()
	in := bufio.NewScanner(res.Body)
	in.Buffer(nil, maxAnswer)
	for in.Scan() {
		var l line
		if err := json.Unmarshal(in.Bytes(), &l); err != nil {
			return coder.Report{}, fmt.Errorf("a line of a scrub: %w", err)
		}
		switch {
		case l.Progress != nil:
			if tell != nil {
				tell(*l.Progress)
			}
		case l.Error != "":
			return deref(l.Report), fmt.Errorf("%w: %s", ErrFailed, l.Error)
		case l.Report != nil:
			return *l.Report, nil
		}
	}
	return coder.Report{}, errors.Join(ErrCut, in.Err())
}

func deref(r *coder.Report) coder.Report {
	if r == nil {
		return coder.Report{}
	}
	return *r
}

// do asks, and returns an answer that isn't a refusal.
func (c *Client) do(ctx context.Context, method, path string) (*http.Response, error) {
	base := strings.TrimSuffix(c.Addr, "/")
	if !strings.Contains(base, "://") {
		base = "http://" + base
	}
	r, err := http.NewRequestWithContext(ctx, method, base+path, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("ask a coder: %w", err)
	}
	if c.Token != "" {
		r.Header.Set("Authorization", "Bearer "+c.Token)
	}
	client := c.HTTP
	if client == nil {
		client = http.DefaultClient
	}
	res, err := client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("ask a coder (does it run, and is this its admin address?): %w", err)
	}
	if res.StatusCode == http.StatusOK {
		return res, nil
	}
	defer func() { _ = res.Body.Close() }()
	var p problem
	if err := json.NewDecoder(io.LimitReader(res.Body, maxAnswer)).Decode(&p); err != nil || p.Text == "" {
		p.Text = res.Status
	}
	return nil, fmt.Errorf("%w: %s", ErrRefused, p.Text)
}
