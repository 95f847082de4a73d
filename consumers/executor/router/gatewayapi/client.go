package gatewayapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"penstock/consumers/executor/kubeapi"
	"penstock/consumers/executor/router"
	"penstock/infra/shares"
)

// client asks an API server, and says what a router is to make of it.
type client struct{ api *kubeapi.Client }

func newClient(o *Options) (*client, error) {
	api, err := kubeapi.New(kubeapi.Options{URL: o.URL, CAFile: o.CAFile, TokenFile: o.TokenFile, Timeout: o.Timeout})
	if err != nil {
		return nil, fmt.Errorf("gateway: %w: %w", router.ErrOptions, err)
	}
	return &client{api}, nil
}

// ask sends a request and decodes the answer. router.ErrUnreachable,
// shares.ErrAbsent, ErrRefused, errConflict.
func (c *client) ask(ctx context.Context, method, path string, query url.Values, body []operation, answer any) error {
	q := kubeapi.Question{Method: method, Path: path, Query: query}
	if body != nil {
		q.ContentType, q.Body = kubeapi.JSONPatch, body
	}
	err := c.api.Ask(ctx, q, answer)
	switch {
	case errors.Is(err, kubeapi.ErrUnreachable):
		return fmt.Errorf("%w: %w", router.ErrUnreachable, err)
	case errors.Is(err, kubeapi.ErrAbsent):
		return fmt.Errorf("%w: %w", shares.ErrAbsent, err)
	}
	return err
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
