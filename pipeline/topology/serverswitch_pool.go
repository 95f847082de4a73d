package topology

import (
	"context"
	"fmt"
	"sync"
	"time"

	"penstock/consumers/executor/dispatcher/claims"
	"penstock/infra/clock"
)

const (
	// poolEvery is how often it is looked what dispatchers have at servers, and poolWithin
	// how long that may take.
	poolEvery  = 250 * time.Millisecond
	poolWithin = time.Second
)

// poolView is what the dispatchers of a site have at its servers.
type poolView struct {
	*alone
	viewer *claims.Viewer

	mu   sync.Mutex
	view claims.View
	err  error // of the last look
}

// watchPools makes the views of sites, which Run keeps.
func (v *alone) watchPools(sites []string) (map[string]*poolView, error) {
	out := map[string]*poolView{}
	for _, site := range sites {
		viewer, err := claims.NewViewer(v.client, clock.System(), site)
		if err != nil {
			return nil, fmt.Errorf("servers of %s: %w", site, err)
		}
		out[site] = &poolView{alone: v, viewer: viewer, err: context.DeadlineExceeded}
	}
	return out, nil
}

// Run looks until the context ends.
func (p *poolView) Run(ctx context.Context) error {
	for {
		short, cancel := context.WithTimeout(ctx, poolWithin)
		view, err := p.viewer.Look(short)
		cancel()
		p.mu.Lock()
		p.view, p.err = view, err
		p.mu.Unlock()
		if clock.System().Sleep(ctx, poolEvery) != nil {
			return nil //nolint:nilerr // The context has ended.
		}
	}
}

// drained says whether no dispatcher has anything at a server, nor will by an older table.
func (p *poolView) drained(_, server string, epoch uint64) (drained bool, detail string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return false, fmt.Sprintf("what entry points have there can't be asked for: %v", p.err)
	}
	return p.view.Drained(server, epoch)
}
