package processes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// drain is how long requests that run may take at a stop.
const drain = 5 * time.Second

// Serve answers requests on a listener until the context ends, as a process that a
// Group started does: requests that run then are finished, for 5 s. It closes the
// listener.
func Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	server := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute}
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		ctx, cancel := context.WithTimeout(context.Background(), drain)
		defer cancel()
		stopped <- server.Shutdown(ctx)
	})
	err := server.Serve(l)
	if stop() || !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve at %s: %w", l.Addr(), err)
	}
	return <-stopped
}

// Answers is a Ready by whether an address answers 200.
func Answers(address string) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return err
		}
		resp, err := once.Do(r)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			b, err := io.ReadAll(io.LimitReader(resp.Body, 1024))
			return errors.Join(fmt.Errorf("%s answers %d: %s", address, resp.StatusCode, b), err)
		}
		return nil
	}
}

// once is a client that keeps no connection.
var once = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
