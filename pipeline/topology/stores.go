package topology

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"penstock/infra/bus"
	"penstock/infra/objectstore"
	"penstock/infra/objectstore/dir"
	"penstock/infra/objectstore/jetstream"
	"penstock/infra/objectstore/lazy"
	"penstock/infra/objectstore/manifest"
	"penstock/infra/objectstore/postgres"
	"penstock/infra/objectstore/s3"
	"penstock/pipeline/config"
)

// Stores are the object stores by site.
type Stores map[string]objectstore.Store

// Close closes the stores that can be.
func (s Stores) Close() error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if c, ok := s[name].(io.Closer); ok {
			if err := c.Close(); err != nil {
				errs = append(errs, fmt.Errorf("site %s: %w", name, err))
			}
		}
	}
	return errors.Join(errs...)
}

// ReplayStores makes a dir store a site under the state folder: a replay never
// touches the configured ones. Nothing is synced: a replay's data can be made
// again from the recording.
func ReplayStores(cfg *config.Config, state string) (Stores, error) {
	out := Stores{}
	for i, s := range cfg.Sites {
		// The folder is named by place in the configuration too: any name of a
		// site is a file name then.
		at := filepath.Join(state, "stores", fmt.Sprintf("%02d-%s", i, fileName(s.Name)))
		st, err := dir.Open(at, dir.Options{NoSync: true})
		if err != nil {
			return nil, fmt.Errorf("site %s: %w", s.Name, err)
		}
		out[s.Name] = st
	}
	return out, nil
}

// CheckStores reports what keeps the configured stores from being opened that
// shows without reaching any.
func CheckStores(cfg *config.Config) error {
	for _, s := range cfg.Sites {
		if s.Store == "" {
			return fmt.Errorf("site %s has no store: give it one such as dir:data/%s, or leave the role executor out", s.Name, s.Name)
		}
		st, err := config.ParseStore(s.Store)
		if err != nil {
			return fmt.Errorf("site %s: store: expected %w", s.Name, err)
		}
		if st.Kind == "s3" {
			if _, _, err := st.Keys(); err != nil {
				return fmt.Errorf("site %s: store: %w", s.Name, err)
			}
		}
	}
	return nil
}

// ConfiguredStores returns the stores that the configuration names. Those on
// other machines are opened when they are first needed, and again as long as
// that fails: one that is away must not keep the others' owners from being moved.
// client is for stores on the bus. Close them.
func ConfiguredStores(ctx context.Context, cfg *config.Config, client *bus.Client, log zerolog.Logger) (Stores, error) {
	return countedStores(ctx, cfg, client, log, nil)
}

// countedStores are the configured ones, with a count of what they do by
// themselves if count isn't nil.
func countedStores(ctx context.Context, cfg *config.Config, client *bus.Client, log zerolog.Logger, count func(site, what string, n int64)) (Stores, error) {
	if err := CheckStores(cfg); err != nil {
		return nil, err
	}
	out := Stores{}
	for _, s := range cfg.Sites {
		st, err := config.ParseStore(s.Store)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("site %s: store: expected %w", s.Name, err), out.Close())
		}
		if st.Kind == "dir" {
			d, err := dir.Open(st.URL, dir.Options{})
			if err != nil {
				return nil, errors.Join(fmt.Errorf("site %s: %w", s.Name, err), out.Close())
			}
			out[s.Name] = d
			continue
		}
		o := opening{cfg: cfg, Store: st, client: client, log: log.With().Str("part", "store of "+s.Name).Logger()}
		if count != nil {
			o.count = func(what string, n int64) { count(s.Name, what, n) }
		}
		out[s.Name] = lazy.New(lazy.Options{Name: st.Place(), Open: o.open})
	}
	out.ready(ctx, log)
	return out, nil
}

// readyWithin is how long a start waits for stores on other machines.
const readyWithin = 10 * time.Second

// ready opens what is to be opened, all at once, and says what is away.
func (s Stores) ready(ctx context.Context, log zerolog.Logger) {
	short, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	var opening sync.WaitGroup
	for name, store := range s {
		l, ok := store.(*lazy.Store)
		if !ok {
			continue
		}
		opening.Go(func() {
			if err := l.Ready(short); err != nil && ctx.Err() == nil {
				log.Warn().Str("part", "store of "+name).Err(err).Msg("the store is away; it is tried again when it is needed")
			}
		})
	}
	opening.Wait()
}

// opening is how a store on another machine is opened.
type opening struct {
	config.Store
	cfg    *config.Config
	client *bus.Client
	log    zerolog.Logger
	count  func(what string, n int64) // nil: nobody counts
}

func (o opening) open(ctx context.Context) (objectstore.Store, error) {
	switch o.Kind {
	case "jetstream":
		if o.client == nil {
			return nil, fmt.Errorf("%s is on the bus, which is not at hand: name it with --nats or --state: %w", o.Place(), ErrOptions)
		}
		return jetstream.Open(ctx, jetstream.Options{
			JS: o.client.JS, Bucket: o.client.Stream(o.URL), Durable: o.cfg.Bus.Sync == "always", Replicas: o.client.Replicas(),
			Manifest: manifest.Options{Count: o.count},
		})
	case "postgres":
		p := postgres.Options{URL: o.URL, Schema: o.cfg.Stores.Postgres.Schema, Connections: o.cfg.Mover.Parallel, Logger: o.log}
		for _, t := range o.cfg.Stores.Postgres.Tables {
			p.Tables = append(p.Tables, postgres.Table(t))
		}
		return postgres.Open(ctx, p)
	case "s3":
		access, secret, err := o.Keys()
		if err != nil {
			return nil, err
		}
		return s3.Open(ctx, s3.Options{
			Endpoint: o.Endpoint, Region: o.Region, Bucket: o.Bucket, Prefix: o.Prefix, AccessKey: access, SecretKey: secret,
			Logger: o.log, Count: o.count,
		})
	}
	return nil, fmt.Errorf("no backend for %s: %w", o.Kind, ErrOptions)
}

func fileName(site string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '-', r == '_', r == '.':
			return r
		}
		return '_'
	}, site)
}
