package topology

import (
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"time"

	"penstock/consumers/decider/placement"
	"penstock/consumers/executor/router"
	"penstock/consumers/redirector/directory"
	"penstock/infra/bus"
	"penstock/infra/clock"
	"penstock/infra/geo"
	"penstock/infra/publisher"
	"penstock/pipeline/config"
	"penstock/producers/entry"
	"penstock/producers/entry/identify"
	"penstock/producers/entry/upstream"
)

const (
	// knowWithin is how long a start waits for where owners are, while the bus is
	// there. Without it what was last known counts.
	knowWithin = 10 * time.Second
	// awayAfter is how long a start waits for the bus itself; clients wait meanwhile.
	awayAfter = time.Second
	// flushWithin bounds what a stop waits for the bus; the rest stays in the spool.
	flushWithin = 5 * time.Second
	// flushAway is the same where the bus is away as it is.
	flushAway = 200 * time.Millisecond
	// snapshotEvery is how old the locations may be with which an entry point starts
	// again while the bus is away; of many owners a snapshot is taken less often.
	snapshotEvery = 5 * time.Second
	// liveAge is after how long a live batch is cut (DESIGN §3).
	liveAge = 100 * time.Millisecond
)

// Entry is the entry point of a site (DESIGN §4.1).
type Entry struct {
	Alone
	Site string
	// Listen and Internal override the configuration; Internal "off" opens no address
	// for components.
	Listen, Internal string
	// Silent entry points publish no events, to measure what those cost. Their
	// heartbeats go on: windows wait for nobody.
	Silent bool
}

// Run serves until the context ends, drains, and hands over its last events.
func (e *Entry) Run(ctx context.Context) error {
	if e.Config == nil || e.Config.Site(e.Site) == nil {
		return fmt.Errorf("site %q is not in the configuration: %w", e.Site, ErrOptions)
	}
	if e.Config.Privacy.UserKey == "" {
		return fmt.Errorf("privacy.user_key is not set: users must be named by a key that is yours: %w", ErrOptions)
	}
	if len(e.Config.Site(e.Site).Servers) == 0 {
		return fmt.Errorf("site %s has no servers: list the addresses of its service in sites[].servers: %w", e.Site, ErrOptions)
	}
	return e.run(ctx, "entry", e.start)
}

// start makes the parts and starts them in the order in which they are to stop.
func (e *Entry) start(ctx context.Context, v *alone) (string, error) {
	d, err := directory.New(directory.Options{
		Client: v.client, Sites: siteNames(e.Config), Snapshot: e.dir("locations.snapshot"), SnapshotEvery: snapshotEvery, Logger: e.Logger, Registerer: v.registry,
	})
	if err != nil {
		return "", err
	}
	p, err := e.publisher(ctx, v)
	if err != nil {
		return "", err
	}
	switched, err := e.newDispatch(v, p)
	if err != nil {
		return "", errors.Join(err, p.Close(ctx))
	}
	pools, o, err := e.options(v, switched)
	if err != nil {
		return "", errors.Join(err, p.Close(ctx))
	}
	o.Locations = d
	if !e.Silent {
		o.Publisher = p
	}
	tables := e.split(&o)
	keeper, err := e.keeper(v, d)
	if err != nil {
		return "", errors.Join(err, p.Close(ctx))
	}
	if keeper != nil {
		o.Gate = keeper
	}
	proxy, err := entry.New(o)
	if err != nil {
		return "", errors.Join(err, p.Close(ctx))
	}
	v.watchLocations(d)
	v.parts.Start("entry", func(ctx context.Context) error {
		awaitDirectory(ctx, v, d)
		return proxy.Run(ctx)
	})
	if keeper != nil {
		v.parts.Start("gate", draining(keeper, v.client, e.part("gate")))
	}
	for _, pool := range pools {
		v.parts.Start("servers", pool.Run)
	}
	if tables != nil {
		if _, err := v.followSplit(ctx, "router-"+e.Name, router.Local(tables), 0); err != nil {
			return "", errors.Join(err, p.Close(ctx))
		}
	}
	if switched != nil {
		switched.start(v, "dispatcher-"+e.Name)
	}
	v.parts.Start("publisher", closing(p, v.client))
	v.parts.Start("directory", d.Run)
	addr := proxy.Addr().String()
	if internal := proxy.InternalAddr(); internal != nil {
		addr += ", for components at " + internal.String()
	}
	return addr, nil
}

// publisher is what hands the events to the bus.
func (e *Entry) publisher(ctx context.Context, v *alone) (*publisher.Publisher, error) {
	return publisher.New(ctx, publisher.Options{
		Client: v.client, Entry: e.Name, MaxAge: liveAge, SpoolDir: e.dir("spool"), SpoolMax: int64(e.Config.Entry.Spool),
		Logger: e.part("publisher"), Registerer: v.registry,
	})
}

// watchLocations makes readiness wait until it is known where owners are.
func (v *alone) watchLocations(d *directory.Directory) {
	v.watch("locations", func() string {
		select {
		case <-d.Ready():
			return ""
		default:
			return "where owners are is not known yet"
		}
	})
}

// awaitDirectory waits until it is known where owners are. A start in an outage of
// the bus without a snapshot goes on without: what is unknown is served as
// entry.unknown says.
func awaitDirectory(ctx context.Context, v *alone, d *directory.Directory) {
	select {
	case <-d.Ready():
		return // A snapshot was there.
	default:
	}
	away, cancel := context.WithTimeout(ctx, awayAfter)
	err := v.client.Ready(away)
	cancel()
	if err == nil {
		known, cancel := context.WithTimeout(ctx, knowWithin)
		defer cancel()
		select {
		case <-d.Ready():
			return
		case <-known.Done():
		}
	}
	v.Logger.Warn().Err(err).Msg("where owners are is not known: requests are served by entry.unknown until the bus has told")
}

// patienceAtEnd is how long a stop waits for the bus.
func patienceAtEnd(client *bus.Client) time.Duration {
	if client.Connected() {
		return flushWithin
	}
	return flushAway
}

// closing ends a publisher's run when its part is stopped, so that no window waits
// for more of it, and closes it.
func closing(p *publisher.Publisher, client *bus.Client) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		<-ctx.Done()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patienceAtEnd(client))
		defer cancel()
		err := p.End(ctx, clock.System().Now().UnixMicro())
		if errors.Is(err, context.DeadlineExceeded) {
			err = nil // The next start ends it.
		}
		err = errors.Join(err, p.Close(ctx))
		if errors.Is(err, context.DeadlineExceeded) {
			return nil // What could not be sent is in the spool, and said in the log.
		}
		return err
	}
}

// options maps the configuration, and makes the pools of servers: the site's own
// first.
func (e *Entry) options(v *alone, switched *dispatch) ([]*upstream.Pool, entry.Options, error) {
	c, site := e.Config.Entry, e.Config.Site(e.Site)
	o := entry.Options{
		Answer: c.Answer, Component: c.Component, Drain: noneIfZero(c.Drain.Std()), ForwardedOnly: c.ForwardedOnly, H2C: c.H2C, HashKey: []byte(e.Config.Privacy.UserKey),
		Hold: noneIfZero(c.Hold.Std()), Internal: c.Internal, Listen: c.Listen, Logger: e.part("entry"), Registerer: v.registry, Replay: noneIfZero(int64(c.Replay)),
		Residency: residency(e.Config), ServerTiming: c.ServerTiming, Site: e.Site, TraceSample: noneIfZero(c.TraceSample), Unknown: c.Unknown,
		Owner: rules(c.Owner), User: rules(c.User), JWT: entry.JWT{Required: c.JWT.Required},
		Limits: entry.Limits{
			Header: int(c.Limits.Header), Body: int64(c.Limits.Body), Connections: c.Limits.Connections,
			HeaderTimeout: c.Limits.HeaderTimeout.Std(), IdleTimeout: c.Limits.IdleTimeout.Std(), BodyRate: noneIfZero(int64(c.Limits.BodyRate.PerSecond())),
		},
	}
	if e.Listen != "" {
		o.Listen = e.Listen
	}
	if e.Internal != "" {
		o.Internal = strings.TrimSuffix(e.Internal, "off")
	}
	for _, r := range c.Class {
		o.Class = append(o.Class, entry.ClassRule(r))
	}
	if err := e.secrets(&o); err != nil {
		return nil, o, err
	}
	lo := e.pool(v, e.Site, upstreamServers(site.Servers))
	lo.H2 = c.ServersH2
	open := upstream.New
	if switched != nil {
		open = switched.with
	}
	local, err := open(lo)
	if err != nil {
		return nil, o, err
	}
	pools := []*upstream.Pool{local}
	o.Local = local
	own, err := e.components(v, &o)
	if err != nil {
		return nil, o, err
	}
	pools = append(pools, own...)
	for _, s := range e.Config.Sites {
		es := entry.Site{Name: s.Name, URL: strings.TrimRight(s.URL, "/")}
		if s.Name != e.Site && s.URL != "" {
			po := e.pool(v, s.Name, []upstream.Server{{Name: s.Name, URL: s.URL}})
			po.Health.Path = "" // A peer says by its answers how it is.
			// What a service of its answers is not its own fault, and another component
			// there may be well.
			po.Retry.Statuses = []int{}
			peer, err := upstream.New(po)
			if err != nil {
				return nil, o, err
			}
			pools, es.Peer = append(pools, peer), peer
		}
		o.Sites = append(o.Sites, es)
	}
	return pools, o, nil
}

// pool is how servers of a site are called.
func (e *Entry) pool(v *alone, site string, servers []upstream.Server) upstream.Options {
	c := e.Config.Entry
	return upstream.Options{
		Name: site, Servers: servers, Buffer: min(int64(c.Replay), upstream.MaxBuffer), Logger: e.part("servers of " + site), Registerer: v.registry,
		Retry: upstream.Retry{Attempts: c.Retry.Attempts, Budget: noneIfZero(c.Retry.Budget)},
		Health: upstream.Health{
			Path: c.Health.Path, Interval: c.Health.Interval.Std(), Timeout: c.Health.Timeout.Std(), Down: c.Health.Down, Up: c.Health.Up,
			Failures: noneIfZero(c.Health.Failures), Eject: c.Health.Eject.Std(), MaxEjected: noneIfZero(c.Health.MaxEjected),
		},
	}
}

// In the options of entry points and pools 0 is the default and less is none; in
// the configuration 0 is none.
func noneIfZero[T int | int64 | float64 | time.Duration](n T) T {
	if n == 0 {
		return -1
	}
	return n
}

func upstreamServers(urls []string) []upstream.Server {
	out := make([]upstream.Server, len(urls))
	for i, u := range urls {
		out[i] = upstream.Server{URL: u}
	}
	return out
}

func rules(in []config.Rule) []identify.Rule {
	out := make([]identify.Rule, len(in))
	for i, r := range in {
		out[i] = identify.Rule(r)
	}
	return out
}

// secrets reads what stands in files of its own, and the places of addresses.
func (e *Entry) secrets(o *entry.Options) error {
	c := e.Config.Entry
	var err error
	if o.PeerKey, err = peerKey(c.PeerKeyFile, e.Config.Privacy.UserKey); err != nil {
		return err
	}
	for _, k := range []struct {
		field, name string
		public      bool
	}{{"entry.jwt.secret_file", c.JWT.SecretFile, false}, {"entry.jwt.public_key_file", c.JWT.PublicKeyFile, true}} {
		if k.name == "" {
			continue
		}
		b, err := os.ReadFile(k.name)
		if err != nil {
			return fmt.Errorf("%s cannot be read: %w", k.field, err)
		}
		if o.JWT.Key, err = identify.ParseKey(k.public, b); err != nil {
			return fmt.Errorf("%s: %w", k.field, err)
		}
	}
	if c.TLS.Cert != "" {
		cert, err := newCertificate(c.TLS.Cert, c.TLS.Key, clock.System(), o.Logger)
		if err != nil {
			return fmt.Errorf("entry.tls: %w", err)
		}
		o.TLS = &tls.Config{GetCertificate: cert.get, MinVersion: tls.VersionTLS12}
	}
	if c.GeoIP != "" {
		db, err := geo.Open(c.GeoIP)
		if err != nil {
			return fmt.Errorf("entry.geoip: %w", err)
		}
		o.Geo = db
	}
	for _, n := range c.TrustedProxies {
		o.TrustedProxies = append(o.TrustedProxies, netip.MustParsePrefix(n)) // Checked with the configuration.
	}
	return nil
}

// minPeerKey is the least length of a key among entry points, in bytes.
const minPeerKey = 16

// peerKey is the key among entry points: that of a file, or one that is made of the
// user key where the configuration names none. There is always one: entry points that
// take each other for clients refuse what they disagree about, and both publish each
// request that goes from one to the other.
func peerKey(file, userKey string) ([]byte, error) {
	if file != "" {
		key, err := SecretFile("entry.peer_key_file", file)
		if err != nil {
			return nil, err
		}
		if len(key) < minPeerKey {
			return nil, fmt.Errorf("entry.peer_key_file %s: got a key of %d bytes, expected %d or more: %w", file, len(key), minPeerKey, ErrOptions)
		}
		return []byte(key), nil
	}
	key, err := hkdf.Key(sha256.New, []byte(userKey), nil, "penstock: the key among entry points", sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("key among entry points: %w", err)
	}
	return []byte(hex.EncodeToString(key)), nil
}

// residency says which sites may hold an owner's data; nil if all may.
func residency(cfg *config.Config) func(owner string) []bool {
	if len(cfg.Residency) == 0 {
		return nil
	}
	var sites []placement.Site
	for _, s := range cfg.Sites {
		sites = append(sites, placement.Site{Name: s.Name})
	}
	var rules []placement.Rule
	for _, r := range cfg.Residency {
		rules = append(rules, placement.Rule(r))
	}
	return placement.NewResidency(sites, rules).Allowed
}

func siteNames(cfg *config.Config) []string {
	var out []string
	for _, s := range cfg.Sites {
		out = append(out, s.Name)
	}
	return out
}

// windowEnd returns the end of the placement window that an instant lies in.
func windowEnd(width time.Duration) func(time.Time) time.Time {
	return func(t time.Time) time.Time { return t.Truncate(width).Add(width) }
}
