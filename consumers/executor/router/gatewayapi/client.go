package gatewayapi

import (
	"bytes"
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

	"penstock/consumers/executor/router"
	"penstock/infra/shares"
)

// mostAnswer bounds an answer of the API server: an object is at most 1.5 MB, a list
// of endpoints some.
const mostAnswer = 16 << 20

// client asks an API server.
type client struct {
	base      *url.URL
	http      *http.Client
	tokenFile string
	timeout   time.Duration
}

func newClient(o *Options) (*client, error) {
	base, err := url.Parse(o.URL)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return nil, fmt.Errorf("gateway: URL of the API server: got %.200q, expected http or https: %w", o.URL, router.ErrOptions)
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, IdleConnTimeout: 90 * time.Second, MaxIdleConnsPerHost: 4}
	if o.CAFile != "" {
		pem, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("gateway: CA file: %w: %w", router.ErrOptions, err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("gateway: CA file %s: expected certificates in PEM: %w", o.CAFile, router.ErrOptions)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	return &client{
		base: base, tokenFile: o.TokenFile, timeout: o.Timeout,
		http: &http.Client{
			Transport: transport,
			// A token goes to nobody else.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// said is the Status object with which an API server refuses.
type said struct {
	Message string `json:"message"`
	Reason  string `json:"reason"`
	Details struct {
		Causes []struct {
			Field string `json:"field"`
		} `json:"causes"`
	} `json:"details"`
}

// ask sends a request and decodes the answer. router.ErrUnreachable,
// shares.ErrAbsent, ErrRefused, errConflict.
func (c *client) ask(ctx context.Context, method, path string, query url.Values, body []operation, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	r, err := c.request(ctx, method, path, query, body)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return fmt.Errorf("%w (%w)", router.ErrUnreachable, err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(io.LimitReader(resp.Body, mostAnswer))
	if err != nil {
		return fmt.Errorf("%w (%w)", router.ErrUnreachable, err)
	}
	if resp.StatusCode != http.StatusOK {
		return refusal(method+" "+path, resp.StatusCode, b)
	}
	if err := json.Unmarshal(b, answer); err != nil {
		return fmt.Errorf("%s %s: %w: an answer that is not the API's (%w)", method, path, router.ErrUnreachable, err)
	}
	return nil
}

func (c *client) request(ctx context.Context, method, path string, query url.Values, body []operation) (*http.Request, error) {
	u := c.base.JoinPath(path)
	u.RawQuery = query.Encode()
	var content io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("gateway: patch: %w", err)
		}
		content = bytes.NewReader(b)
	}
	r, err := http.NewRequestWithContext(ctx, method, u.String(), content)
	if err != nil {
		return nil, fmt.Errorf("gateway: %w: %w", router.ErrOptions, err)
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", "penstock")
	if body != nil {
		r.Header.Set("Content-Type", "application/json-patch+json")
	}
	if c.tokenFile != "" {
		b, err := os.ReadFile(c.tokenFile)
		if err != nil {
			return nil, fmt.Errorf("%w (%w)", router.ErrUnreachable, err)
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
		kind = shares.ErrAbsent
	case code == http.StatusConflict:
		kind = errConflict
	case code == http.StatusUnprocessableEntity && len(s.Details.Causes) == 0:
		kind = errConflict // a test of the patch failed: nothing says what is wrong with it
	case code == http.StatusUnauthorized, code == http.StatusRequestTimeout, code == http.StatusTooManyRequests, code >= 500:
		kind = router.ErrUnreachable
	}
	return fmt.Errorf("%w: %s: %d %s: %.600s", kind, what, code, http.StatusText(code), text)
}

// path of an HTTPRoute.
func (k key) path() string {
	return "/apis/gateway.networking.k8s.io/v1/namespaces/" + url.PathEscape(k.namespace) + "/httproutes/" + url.PathEscape(k.name)
}

// read returns an HTTPRoute.
func (c *client) read(ctx context.Context, k key) (*object, error) {
	o := &object{}
	if err := c.ask(ctx, http.MethodGet, k.path(), nil, nil, o); err != nil {
		return nil, fmt.Errorf("HTTPRoute %s/%s: %w", k.namespace, k.name, err)
	}
	return o, nil
}

// write patches an HTTPRoute and returns what it is then.
func (c *client) write(ctx context.Context, k key, ops []operation) (*object, error) {
	o := &object{}
	query := url.Values{"fieldManager": {"penstock"}, "fieldValidation": {"Strict"}}
	if err := c.ask(ctx, http.MethodPatch, k.path(), query, ops, o); err != nil {
		return nil, fmt.Errorf("HTTPRoute %s/%s: %w", k.namespace, k.name, err)
	}
	return o, nil
}

// endpointSlices is a list of EndpointSlices (discovery.k8s.io/v1).
type endpointSlices struct {
	Items []struct {
		Metadata struct {
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
		Endpoints []struct {
			Conditions struct {
				Ready *bool `json:"ready"` // null is ready
			} `json:"conditions"`
		} `json:"endpoints"`
	} `json:"items"`
}

const serviceLabel = "kubernetes.io/service-name"

// dead returns which Services of a namespace have no endpoint that is ready. One of
// which there is no slice at all has endpoints of another kind (an external name):
// nothing is known of them.
func (c *client) dead(ctx context.Context, namespace string, services []string) (map[string]bool, error) {
	var list endpointSlices
	path := "/apis/discovery.k8s.io/v1/namespaces/" + url.PathEscape(namespace) + "/endpointslices"
	query := url.Values{"labelSelector": {serviceLabel + " in (" + strings.Join(services, ",") + ")"}}
	if err := c.ask(ctx, http.MethodGet, path, query, nil, &list); err != nil {
		return nil, fmt.Errorf("endpoints in %s: %w", namespace, err)
	}
	dead, ready := map[string]bool{}, map[string]bool{}
	for _, slice := range list.Items {
		name := slice.Metadata.Labels[serviceLabel]
		for _, e := range slice.Endpoints {
			ready[name] = ready[name] || e.Conditions.Ready == nil || *e.Conditions.Ready
		}
		dead[name] = !ready[name]
	}
	return dead, nil
}
