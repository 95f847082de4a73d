package topology

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"penstock/consumers/executor/router"
	"penstock/consumers/executor/router/xds"
	"penstock/infra/clock"
	"penstock/infra/door"
	"penstock/infra/shares"
	"penstock/pipeline/config"
	"penstock/schemas/control"
)

// xdsOptions reads the configuration of Envoys.
func xdsOptions(v *alone, c *config.RouterXDS) (xds.Options, error) {
	ready := readiness{}
	o := xds.Options{Name: c.Name, Wait: c.Wait.Std(), Metrics: executorMeter{v.metrics, control.Split}, Ready: ready.ask}
	text, err := os.ReadFile(c.Base)
	if err != nil {
		return o, fmt.Errorf("base: %w", err)
	}
	if o.Base, err = xds.ReadBase(text); err != nil {
		return o, fmt.Errorf("base %s: %w", c.Base, err)
	}
	for i := range c.Splits {
		s := &c.Splits[i]
		for site, url := range s.Ready {
			ready[shares.Replica{Component: s.To, Site: site}] = url
		}
		o.Splits = append(o.Splits, xds.Split{
			Link: splitLink(s.Link()), RouteConfig: s.RouteConfig, Route: s.Route, Clusters: s.Clusters, Endpoints: s.Endpoints, Zones: s.Zones, Writes: s.Writes,
		})
	}
	return o, nil
}

// xds serves a control plane, and returns where. Envoys are answered when the tables
// of before are in force again, not earlier: what a file says as their start is no
// split.
func (r *Router) xds(ctx context.Context, v *alone, c *config.RouterXDS) (string, error) {
	o, err := xdsOptions(v, c)
	if err != nil {
		return "", fmt.Errorf("target %s: %w", c.Name, err)
	}
	options, err := xdsServer(v, c)
	if err != nil {
		return "", fmt.Errorf("target %s: %w", c.Name, err)
	}
	var target *xds.Target
	if err := r.follow(ctx, v, c.Name, func() (router.Target, error) {
		target, err = xds.New(o)
		return target, err
	}); err != nil {
		return "", err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return "", fmt.Errorf("target %s: %w", c.Name, err)
	}
	v.parts.Start("control plane "+c.Name, func(ctx context.Context) error {
		server := grpc.NewServer(options...)
		target.Register(ctx, server)
		stop := context.AfterFunc(ctx, server.Stop) // streams never end by themselves
		defer stop()
		if err := server.Serve(l); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			return fmt.Errorf("control plane %s: %w", c.Name, err)
		}
		return nil
	})
	return l.Addr().String(), nil
}

// xdsServer says who may connect.
func xdsServer(v *alone, c *config.RouterXDS) ([]grpc.ServerOption, error) {
	var options []grpc.ServerOption
	if c.TLS.Cert != "" {
		cert, err := newCertificate(c.TLS.Cert, c.TLS.Key, clock.System(), v.part(c.Name))
		if err != nil {
			return nil, fmt.Errorf("tls: %w", err)
		}
		t := &tls.Config{GetCertificate: cert.get, MinVersion: tls.VersionTLS12}
		if c.TLS.ClientCA != "" {
			pem, err := os.ReadFile(c.TLS.ClientCA)
			if err != nil {
				return nil, fmt.Errorf("tls.client_ca: %w", err)
			}
			t.ClientAuth, t.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
			if !t.ClientCAs.AppendCertsFromPEM(pem) {
				return nil, fmt.Errorf("tls.client_ca %s: expected certificates in PEM: %w", c.TLS.ClientCA, ErrOptions)
			}
		}
		options = append(options, grpc.Creds(credentials.NewTLS(t)))
	}
	token, err := SecretFile("token_file", c.TokenFile)
	if err != nil || token == "" {
		return options, err
	}
	guard := door.New(door.Options{Tokens: []string{token}})
	may := func(ctx context.Context) error {
		if slices.ContainsFunc(metadata.ValueFromIncomingContext(ctx, "authorization"), guard.Proves) {
			return nil
		}
		v.metrics.SetAside.Inc(string(control.Split), "xds-unauthorized")
		return status.Error(codes.Unauthenticated, "a token is needed")
	}
	return append(options,
		grpc.StreamInterceptor(func(srv any, s grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
			if err := may(s.Context()); err != nil {
				return err
			}
			return next(srv, s)
		}),
		grpc.UnaryInterceptor(func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			if err := may(ctx); err != nil {
				return nil, err
			}
			return next(ctx, request)
		})), nil
}

// readiness are the URLs that answer 2xx while a replica can take requests. The
// protocol of Envoys tells nobody.
type readiness map[shares.Replica]string

// siteAnswersWithin bounds the question.
const siteAnswersWithin = 2 * time.Second

// ask is nil if a replica can take requests, or has no URL.
func (all readiness) ask(ctx context.Context, r shares.Replica) error {
	url := all[r]
	if url == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, siteAnswersWithin)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", url, err)
	}
	request.Close = true // one question now and then: no connection is kept for it
	resp, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("%w: %w", router.ErrNotReady, err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%w: %s answers %s", router.ErrNotReady, url, resp.Status)
	}
	return nil
}
