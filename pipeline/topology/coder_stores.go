package topology

import (
	"context"
	"errors"
	"fmt"
	"io"

	"penstock/consumers/executor/coder/chunks"
	"penstock/consumers/executor/coder/chunks/dir"
	"penstock/consumers/executor/coder/chunks/jetstream"
	"penstock/consumers/executor/coder/chunks/s3"
	"penstock/pipeline/config"
)

// blobStores are the stores of a coder, in the order of the configuration.
type blobStores []chunks.Store

// Close closes those that can be.
func (s blobStores) Close() error {
	var errs []error
	for _, one := range s {
		if c, ok := one.(io.Closer); ok {
			if err := c.Close(); err != nil {
				errs = append(errs, fmt.Errorf("store %s: %w", one.Name(), err))
			}
		}
	}
	return errors.Join(errs...)
}

// openBlobs opens the stores of a coder. One that can't be reached is no failure: a coder
// does without as long as enough others live.
func openBlobs(ctx context.Context, v *alone, x *config.Coder) (blobStores, error) {
	var out blobStores
	for i := range x.Stores {
		one, err := openBlob(ctx, v, x, &x.Stores[i])
		if err != nil {
			return nil, errors.Join(fmt.Errorf("store %s of coder %s: %w", x.Stores[i].Name, x.Name, err), out.Close())
		}
		out = append(out, one)
	}
	return out, nil
}

func openBlob(ctx context.Context, v *alone, x *config.Coder, s *config.CoderStore) (chunks.Store, error) {
	at, err := config.ParseStore(s.URL)
	if err != nil {
		return nil, fmt.Errorf("url: expected %w: %w", err, ErrOptions)
	}
	count := func(what string, n int64) { v.metrics.StoreEvents.Add(n, x.Site, s.Name+" "+what) }
	switch at.Kind {
	case "dir":
		return dir.Open(s.Name, at.URL)
	case "jetstream":
		// Its stream is on the bus: without it there is nothing that could be served.
		if err := v.client.Ready(ctx); err != nil {
			return nil, err
		}
		return jetstream.Open(ctx, jetstream.Options{
			Name: s.Name, JS: v.client.JS, Bucket: v.client.Stream(at.URL), Replicas: v.client.Replicas(), Count: count,
		})
	}
	access, secret, err := at.Keys()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, ErrOptions)
	}
	return s3.New(s3.Options{
		Name: s.Name, Endpoint: at.Endpoint, Region: at.Region, Bucket: at.Bucket, Prefix: at.Prefix, AccessKey: access, SecretKey: secret,
		Connections: v.Config.ConnectionsOf(x), Count: count,
	})
}
