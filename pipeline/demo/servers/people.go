package servers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"penstock/infra/clock"
	"penstock/pipeline/demo/load"
	"penstock/pipeline/demo/servers/backend"
)

const (
	// maxLag is how late a request may be sent: a busy machine may be late, and delays
	// count from when a request was due, but one that is later than this shows nothing.
	maxLag = 3 * time.Second
	// maxUnderWay is how many requests to a site may be under way.
	maxUnderWay = 4000
	// longest is how long a client waits for an answer.
	longest = 30 * time.Second
	// maxExamples is how many failures are told.
	maxExamples = 3
)

// people are the clients of a site.
type people struct {
	clock   clock.Clock
	client  *http.Client
	entries []string // addresses
	seen    load.Samples[shot]

	mu     sync.Mutex
	failed []failure
}

// shot is what a request is told from others by.
type shot struct {
	class string
	write bool // may not be sent twice
}

// failure is a request that was not answered with what was asked for.
type failure struct {
	shot
	due, began, ended time.Time
	why               string
}

// errAnswer is told of an answer that is not what was asked for.
var errAnswer = errors.New("not what was asked for")

func newPeople(c clock.Clock, entries []string) *people {
	// Idle connections are given up before an entry point would: else a request might
	// meet the end of its connection on the way.
	return &people{clock: c, entries: entries, client: &http.Client{
		Timeout: longest, Transport: &http.Transport{MaxIdleConnsPerHost: 1000, IdleConnTimeout: 20 * time.Second},
	}}
}

func (p *people) close() { p.client.CloseIdleConnections() }

// draw returns the load of a site: what is asked for, and of which entry point, is drawn
// from rng, and so the same for both sites.
func (p *people) draw(rng *rand.Rand) func(load.Shot) func(context.Context) {
	return func(s load.Shot) func(context.Context) {
		entry := p.entries[rng.IntN(len(p.entries))]
		x := shot{class: backend.Page, write: rng.Float64() < writes}
		objects := backend.Pages
		if rng.Float64() < files {
			x, objects = shot{class: backend.Static}, backend.Files
		}
		number := rng.IntN(objects)
		return func(ctx context.Context) {
			began := p.clock.Now()
			err := p.ask(ctx, entry, x, number)
			switch now := p.clock.Now(); {
			case err == nil:
				p.seen.Add(s.Due, now.Sub(s.Due), x)
			case ctx.Err() == nil: // Else the run was given up.
				p.fail(failure{x, s.Due, began, now, err.Error()})
			}
		}
	}
}

// ask sends a request and looks at its answer.
func (p *people) ask(ctx context.Context, entry string, x shot, number int) error {
	method, body := http.MethodGet, io.Reader(http.NoBody)
	if x.write {
		method, body = http.MethodPost, strings.NewReader("order=1")
	}
	path := "/" + x.class + "/" + strconv.Itoa(number)
	r, err := http.NewRequestWithContext(ctx, method, "http://"+entry+path, body)
	if err != nil {
		return err
	}
	resp, err := p.client.Do(r)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		b, err := io.ReadAll(io.LimitReader(resp.Body, 200))
		return errors.Join(fmt.Errorf("%s %s: %d %s: %w", method, path, resp.StatusCode, strings.TrimSpace(string(b)), errAnswer), err)
	}
	n, err := io.Copy(io.Discard, resp.Body)
	if want := backend.Size(x.class, number); err == nil && n != int64(want) {
		err = fmt.Errorf("%d bytes, expected %d: %w", n, want, errAnswer)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}

func (p *people) fail(f failure) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed = append(p.failed, f)
}

// failures are the requests that failed.
func (p *people) failures() []failure {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]failure(nil), p.failed...)
}

// penalty is what a request costs by how long it took.
func (x *shot) penalty(took time.Duration) float64 {
	c := classOf(x.class)
	return c.Penalty * max(0, took-c.Limit).Seconds()
}
