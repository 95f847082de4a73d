package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"

	"penstock/infra/clock"
)

// probeBody is how much of a probe's answer is read.
const probeBody = 64 << 10

// probeAll probes all servers at once, every interval, until the context ends.
func (p *Pool) probeAll(ctx context.Context) {
	ticker := p.o.Clock.NewTicker(p.o.Health.Interval)
	defer ticker.Stop()
	for {
		p.probeOnce(ctx)
		select {
		case <-ticker.C():
		case <-ctx.Done():
			return
		}
	}
}

// probeOnce probes each server that may get requests and notes the results.
func (p *Pool) probeOnce(ctx context.Context) {
	p.mu.Lock()
	servers := slices.DeleteFunc(slices.Clone(p.servers), func(s *server) bool { return !s.counts() })
	p.mu.Unlock()
	results := make([]error, len(servers))
	var all sync.WaitGroup
	for i, s := range servers {
		all.Go(func() { results[i] = p.probe(ctx, s) })
	}
	all.Wait()
	if ctx.Err() != nil {
		return // a probe that was cut off says nothing
	}
	p.note(func() {
		for i, s := range servers {
			if s.counts() {
				s.probe(results[i] == nil)
				p.board.probed(&s.standing, results[i] == nil)
			}
		}
	})
	for i, err := range results {
		if err != nil {
			p.o.Logger.Debug().Err(err).Str("pool", p.o.Name).Str("server", servers[i].name).Msg("probe")
		}
	}
}

// probe asks one server whether it is well.
func (p *Pool) probe(ctx context.Context, s *server) error {
	if d := p.o.Health.Timeout; d > 0 {
		// The system's clock: what is waited for is a socket.
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, clock.System().Now().Add(d))
		defer cancel()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url.Scheme+"://"+s.url.Host+p.o.Health.Path, nil)
	if err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	req.Header.Set("User-Agent", "penstock-health")
	resp, err := p.probes.RoundTrip(req)
	if err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	if _, err := io.CopyN(io.Discard, resp.Body, probeBody); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("probe: %w", err)
	}
	if resp.StatusCode < 200 || resp.StatusCode >= 400 {
		return fmt.Errorf("probe: status %d", resp.StatusCode)
	}
	return nil
}
