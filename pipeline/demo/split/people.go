package split

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"penstock/infra/clock"
	"penstock/pipeline/demo/load"
	"penstock/pipeline/demo/services"
)

const (
	// maxLag is how late a request may be sent: a busy machine may be late, and delays
	// count from when a request was due, but one that is later than this shows nothing.
	maxLag = 3 * time.Second
	// maxUnderWay is how many requests of a site may be under way.
	maxUnderWay = 2000
	// longest is how long a client waits for an answer.
	longest = 20 * time.Second
	// maxExamples is how many failures are told.
	maxExamples = 3
)

// people are the clients of a world.
type people struct {
	clock  clock.Clock
	client *http.Client
	seen   load.Samples[shot]
	slowed string         // the component that gets slower
	sites  map[string]int // their numbers
	at     []string       // addresses of entry points, by site

	mu     sync.Mutex
	failed int
	told   []string // some of the failures
}

func newPeople(c clock.Clock, slowed string, sites, entries []string) *people {
	p := &people{clock: c, slowed: slowed, sites: map[string]int{}, at: entries}
	for i, s := range sites {
		p.sites[s] = i
	}
	// Idle connections are given up before an entry point would: else a request might
	// meet the end of its connection on the way.
	p.client = &http.Client{Timeout: longest, Transport: &http.Transport{MaxIdleConnsPerHost: 1000, IdleConnTimeout: 20 * time.Second}}
	return p
}

func (p *people) close() { p.client.CloseIdleConnections() }

// draw returns the load of a site, in which kinds are drawn from rng.
func (p *people) draw(site int, rng *rand.Rand) func(load.Shot) func(context.Context) {
	return func(s load.Shot) func(context.Context) {
		k := kindOf(rng.IntN(100))
		return func(ctx context.Context) {
			slowed, err := p.ask(ctx, site, &services.Kinds[k])
			switch {
			case err == nil:
				p.seen.Add(s.Due, p.clock.Now().Sub(s.Due), shot{site: site, kind: k, slowed: slowed})
			case ctx.Err() == nil: // Else the run was given up.
				p.fail(fmt.Errorf("%s: %w", services.Kinds[k].Name, err))
			}
		}
	}
}

// kindOf is the kind that a number from 0 to 99 stands for.
func kindOf(n int) int {
	for i := range services.Kinds {
		if n -= services.Kinds[i].Share; n < 0 {
			return i
		}
	}
	return len(services.Kinds) - 1
}

// ask sends a request to a site's entry point, and says which site served the
// component that gets slower, −1 if none did.
func (p *people) ask(ctx context.Context, site int, k *services.Kind) (slowed int, err error) {
	method := http.MethodGet
	if k.Write {
		method = http.MethodPost
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://"+p.at[site]+"/"+k.Name, http.NoBody)
	if err != nil {
		return -1, err
	}
	resp, err := p.client.Do(r)
	if err != nil {
		return -1, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return -1, err
	}
	if resp.StatusCode != http.StatusOK {
		return -1, fmt.Errorf("%d %.200s", resp.StatusCode, bytes.TrimSpace(b))
	}
	var a services.Answer
	if err := json.Unmarshal(b, &a); err != nil {
		return -1, fmt.Errorf("%.200s: %w", b, err)
	}
	slowed = -1
	for _, by := range a.By {
		at, known := p.sites[by.Site]
		if !known {
			return -1, fmt.Errorf("served by %q", by.Site)
		}
		if by.Component == p.slowed {
			slowed = at
		}
	}
	return slowed, nil
}

func (p *people) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed++; len(p.told) < maxExamples {
		p.told = append(p.told, err.Error())
	}
}

// failures are how many requests failed, and some of them.
func (p *people) failures() (int, []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed, append([]string(nil), p.told...)
}
