package topology

import (
	"context"
	"fmt"
	"net/netip"

	"penstock/consumers/redirector"
	"penstock/consumers/redirector/directory"
	"penstock/producers/entry"
)

// Redirector is the service that tells where owners are (DESIGN §4.1).
type Redirector struct {
	Alone
	// Listen overrides the configuration.
	Listen string
}

// Run serves until the context ends.
func (r *Redirector) Run(ctx context.Context) error { return r.run(ctx, "redirector", r.start) }

func (r *Redirector) start(_ context.Context, v *alone) (string, error) {
	d, err := directory.New(directory.Options{
		Client: v.client, Sites: siteNames(r.Config), Snapshot: r.dir("locations.snapshot"), Logger: r.Logger, Registerer: v.registry,
	})
	if err != nil {
		return "", err
	}
	c := r.Config.Redirector
	o := redirector.Options{
		Client: v.client, Directory: d, ForwardedOnly: r.Config.Entry.ForwardedOnly, Listen: c.Listen, Logger: r.part("redirector"), MaxAge: c.MaxAge.Std(), Public: c.Public,
		Rate: float64(c.Rate), TotalRate: float64(c.TotalRate), Registerer: v.registry, Sites: map[string]string{},
		Unknown: entry.UnknownSite(siteNames(r.Config), r.Config.Entry.Unknown, residency(r.Config)), WindowEnd: windowEnd(r.Config.Placement.Window.Std()), Version: redirectorVersion,
	}
	if r.Listen != "" {
		o.Listen = r.Listen
	}
	for _, s := range r.Config.Sites {
		o.Sites[s.Name] = s.URL
	}
	for _, n := range r.Config.Entry.TrustedProxies {
		o.Trusted = append(o.Trusted, netip.MustParsePrefix(n)) // Checked with the configuration.
	}
	token, err := SecretFile("redirector.token_file", c.TokenFile)
	if err != nil {
		return "", err
	}
	if token != "" {
		o.Tokens = []string{token}
	}
	server, err := redirector.New(o)
	if err != nil {
		return "", fmt.Errorf("redirector: %w", err)
	}
	v.watchLocations(d)
	v.parts.Start("redirector", server.Run)
	v.parts.Start("directory", d.Run)
	return server.Addr(), nil
}

// redirectorVersion is that of the micro service's interface.
const redirectorVersion = "1.0.0"
