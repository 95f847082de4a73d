package topology

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"penstock/infra/clock"
	"penstock/infra/errorkind"
	"penstock/infra/publisher"
	"penstock/producers/otlp"
	"penstock/producers/otlp/join"
)

// Receive takes spans by OTLP and publishes the calls that they tell of (DESIGN §3.1,
// §4.2).
type Receive struct {
	Alone
	// GRPC and HTTP override the configuration; "off" is neither.
	GRPC, HTTP string
	// Self is this receiver's name among spans.peers; by default its address.
	Self string
}

// off is the address of a listener that is not wanted.
const off = "off"

// Run receives until the context ends. All spans that were taken are then resolved,
// and their calls published or in the spool.
func (r *Receive) Run(ctx context.Context) error {
	if r.Config == nil {
		return fmt.Errorf("a configuration is needed: %w", ErrOptions)
	}
	if c := &r.Config.Spans; chosen(r.GRPC, c.GRPC) == "" && chosen(r.HTTP, c.HTTP) == "" {
		return fmt.Errorf("spans would be taken nowhere: neither --grpc (spans.grpc) nor --http (spans.http) names an address: %w", ErrOptions)
	}
	return r.run(ctx, "receive", r.start)
}

func (r *Receive) start(ctx context.Context, v *alone) (addr string, err error) {
	o, err := r.options(ctx, v)
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, closeAll(o.GRPC, o.HTTP))
		}
	}()
	p, err := publisher.New(ctx, publisher.Options{
		Client: v.client, Disorder: o.Delay(), Entry: r.Name, MaxAge: liveAge, SpoolDir: r.dir("spool"), SpoolMax: int64(r.Config.Spans.Spool),
		Logger: r.part("publisher"), Registerer: v.registry,
	})
	if err != nil {
		return "", err
	}
	o.Publisher = p
	receiver, err := otlp.New(o)
	if errors.Is(err, otlp.ErrOptions) {
		err = errorkind.Errorf(ErrOptions, "%w", err)
	}
	if err != nil {
		return "", errors.Join(err, p.Close(ctx))
	}
	v.parts.Start("receiver", receiver.Run)
	v.parts.Start("publisher", closing(p, v.client))
	return listeners(o), nil
}

// options maps the configuration and opens the listeners.
func (r *Receive) options(ctx context.Context, v *alone) (o otlp.Options, err error) {
	c := &r.Config.Spans
	o = otlp.Options{
		MaxAge: c.MaxAge.Std(), MaxBody: int64(c.MaxBody), MaxSpans: c.MaxSpans, Window: c.Window.Std(), Peers: c.Peers,
		Logger: r.part("receiver"), Registerer: v.registry,
		Entries: map[string]join.Entries{"servers": join.EntryServers, "all": join.EntryAll, "none": join.EntryNone}[c.Entries],
	}
	if c.Service == "own" {
		o.Service = join.Own
	}
	if o.Rules, err = c.Rules(); err != nil {
		return o, err
	}
	if o.Token, err = SecretFile("spans.token_file", c.TokenFile); err != nil {
		return o, err
	}
	if err = r.secure(&o); err != nil {
		return o, err
	}
	grpcAt, httpAt := chosen(r.GRPC, c.GRPC), chosen(r.HTTP, c.HTTP)
	if len(o.Peers) > 0 {
		o.Self = r.Self
		if o.Self == "" {
			o.Self = grpcAt
		}
		if !slices.Contains(o.Peers, o.Self) {
			return o, fmt.Errorf("%q is not among spans.peers %q: --self says which of them this one is: %w", o.Self, o.Peers, ErrOptions)
		}
	}
	for _, l := range [...]struct {
		at string
		to *net.Listener
	}{{grpcAt, &o.GRPC}, {httpAt, &o.HTTP}} {
		if l.at == "" {
			continue
		}
		if *l.to, err = new(net.ListenConfig).Listen(ctx, "tcp", l.at); err != nil {
			return o, errors.Join(fmt.Errorf("receiver of spans: %w", err), closeAll(o.GRPC, o.HTTP))
		}
	}
	return o, nil
}

func chosen(flag, configured string) string {
	switch flag {
	case "":
		return configured
	case off:
		return ""
	}
	return flag
}

// secure reads the certificate for clients, and says whose peers must have.
func (r *Receive) secure(o *otlp.Options) error {
	c := r.Config.Spans.TLS
	if c.Cert == "" {
		return nil
	}
	cert, err := newCertificate(c.Cert, c.Key, clock.System(), o.Logger)
	if err != nil {
		return fmt.Errorf("spans.tls: %w", err)
	}
	o.TLS = &tls.Config{GetCertificate: cert.get, MinVersion: tls.VersionTLS12}
	peers := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CA != "" {
		b, err := os.ReadFile(c.CA)
		if err != nil {
			return fmt.Errorf("spans.tls.ca cannot be read: %w", err)
		}
		if peers.RootCAs = x509.NewCertPool(); !peers.RootCAs.AppendCertsFromPEM(b) {
			return fmt.Errorf("spans.tls.ca %s: no certificate is in it: %w", c.CA, ErrOptions)
		}
	}
	o.PeerDial = []grpc.DialOption{grpc.WithTransportCredentials(credentials.NewTLS(peers))}
	return nil
}

// listeners says where spans are taken.
func listeners(o otlp.Options) string {
	out := ""
	if o.GRPC != nil {
		out = o.GRPC.Addr().String() + " (gRPC)"
	}
	if o.HTTP != nil {
		if out != "" {
			out += " and "
		}
		scheme := "http://"
		if o.TLS != nil {
			scheme = "https://"
		}
		out += scheme + o.HTTP.Addr().String() + otlp.TracesPath
	}
	return out
}

func closeAll(all ...net.Listener) error {
	var errs []error
	for _, l := range all {
		if l != nil {
			errs = append(errs, l.Close())
		}
	}
	return errors.Join(errs...)
}
