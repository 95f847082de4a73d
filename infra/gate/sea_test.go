package gate

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"penstock/schemas/control"
)

// sea is a bus that loses, delays and repeats, in the virtual time of a synctest
// bubble. What was sent to it may arrive after its sender has died.
type sea struct {
	mu        sync.Mutex
	rng       *rand.Rand
	loss      float64 // of messages
	revision  uint64
	bucket    map[string]change
	log       []change
	grown     chan struct{}
	serving   map[string][]*server
	locations map[string]located
	// moved is told of each change of an owner's site, by its mover's word on what
	// it had copied, with the lock held.
	moved func(owner, from, to string, copied int)
}

type located struct {
	l        control.Location
	revision uint64
}

type server struct {
	group  string
	handle func([]byte) []byte
	port   *port
	gone   bool
}

func newSea(seed uint64) *sea {
	return &sea{
		rng: rand.New(rand.NewPCG(seed, 1)), loss: 0.05, bucket: map[string]change{}, grown: make(chan struct{}),
		serving: map[string][]*server{}, locations: map[string]located{},
	}
}

func (s *sea) chance(p float64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rng.Float64() < p
}

// between is a time up to most, mostly short.
func (s *sea) between(most time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.rng.Float64()
	return time.Duration(x * x * x * float64(most))
}

func (s *sea) pick(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rng.IntN(n)
}

// travel is how long a message is under way: a moment, and sometimes seconds, unless
// the sea is calm.
func (s *sea) travel() time.Duration {
	if s.loss > 0 && s.chance(0.02) {
		return s.between(6 * time.Second)
	}
	return s.between(20 * time.Millisecond)
}

// port is a process's link to the sea: it can be cut, and die.
type port struct {
	sea *sea
	ctx context.Context // of the process
	mu  sync.Mutex
	off time.Time // cut until then
}

var errCut = errors.New("no connection")

func (p *port) cut(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.off = time.Now().Add(d)
}

func (p *port) connected() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ctx.Err() == nil && !time.Now().Before(p.off)
}

// send lets f happen at the other end after the way there, and returns after the
// way back, if neither is lost. f may happen although send has failed.
func (p *port) send(ctx context.Context, f func()) error {
	if !p.connected() {
		return errCut
	}
	if p.sea.chance(p.sea.loss) {
		<-ctx.Done()
		return ctx.Err()
	}
	done := make(chan struct{})
	go func() {
		time.Sleep(p.sea.travel())
		f()
		time.Sleep(p.sea.travel())
		close(done)
	}()
	lost := p.sea.chance(p.sea.loss)
	select {
	case <-done:
		if lost || !p.connected() {
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-p.ctx.Done():
		return p.ctx.Err()
	}
}

func (p *port) ask(ctx context.Context, subj string, body []byte) ([]byte, error) {
	var answers [][]byte
	var mu sync.Mutex
	twice := 1
	if p.sea.chance(0.05) {
		twice = 2 // Somebody on the way says it again.
	}
	err := p.send(ctx, func() {
		for _, s := range p.sea.servers(subj) {
			if !s.port.connected() {
				continue
			}
			for range twice {
				b := s.handle(body)
				mu.Lock()
				answers = append(answers, b)
				mu.Unlock()
			}
		}
	})
	mu.Lock()
	defer mu.Unlock()
	if err == nil && len(answers) == 0 {
		err = errors.New("nobody answers")
	}
	if err != nil {
		return nil, err
	}
	return answers[0], nil
}

// servers are those who get a request: all without a group, one of a group.
func (s *sea) servers(subj string) []*server {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all, group []*server
	for _, x := range s.serving[subj] {
		switch {
		case x.gone:
		case x.group == "":
			all = append(all, x)
		default:
			group = append(group, x)
		}
	}
	if len(group) > 0 {
		all = append(all, group[s.rng.IntN(len(group))])
	}
	return all
}

func (p *port) serve(subj, group string, handle func([]byte) []byte) (func(), error) {
	s := &server{group: group, handle: handle, port: p}
	var working sync.WaitGroup
	var mu sync.Mutex
	s.handle = func(b []byte) []byte {
		mu.Lock()
		if s.gone {
			mu.Unlock()
			return nil
		}
		working.Add(1)
		mu.Unlock()
		defer working.Done()
		return handle(b)
	}
	p.sea.mu.Lock()
	defer p.sea.mu.Unlock()
	p.sea.serving[subj] = append(p.sea.serving[subj], s)
	return func() {
		p.sea.mu.Lock()
		mu.Lock()
		s.gone = true
		mu.Unlock()
		p.sea.serving[subj] = slices.DeleteFunc(p.sea.serving[subj], func(x *server) bool { return x == s })
		p.sea.mu.Unlock()
		working.Wait()
	}, nil
}

// write changes a key. The lock is held.
func (s *sea) write(key string, value []byte) uint64 {
	s.revision++
	c := change{key, value, s.revision}
	s.bucket[key] = c
	s.log = append(s.log, c)
	close(s.grown)
	s.grown = make(chan struct{})
	return s.revision
}

func (p *port) put(ctx context.Context, key string, value []byte) (uint64, error) {
	var revision uint64
	err := p.send(ctx, func() {
		p.sea.mu.Lock()
		defer p.sea.mu.Unlock()
		revision = p.sea.write(key, value)
	})
	if err != nil {
		return 0, err // What is under way may write to revision still.
	}
	return revision, nil
}

func (p *port) get(ctx context.Context, key string) ([]byte, error) {
	var value []byte
	err := p.send(ctx, func() {
		p.sea.mu.Lock()
		defer p.sea.mu.Unlock()
		value = p.sea.bucket[key].value
	})
	if err != nil {
		return nil, err
	}
	return value, nil
}

func (p *port) remove(ctx context.Context, key string) error {
	return p.send(ctx, func() {
		p.sea.mu.Lock()
		defer p.sea.mu.Unlock()
		p.sea.write(key, nil)
	})
}

func (p *port) follow(ctx context.Context, fn func(change) bool) error {
	p.sea.mu.Lock()
	have, next := slices.Collect(maps.Values(p.sea.bucket)), len(p.sea.log)
	p.sea.mu.Unlock()
	slices.SortFunc(have, func(a, b change) int { return int(a.revision) - int(b.revision) })
	for {
		for _, c := range have {
			if !p.connected() {
				return errCut
			}
			if !fn(c) {
				return nil
			}
		}
		time.Sleep(p.sea.between(30 * time.Millisecond)) // It lags.
		p.sea.mu.Lock()
		have, next = slices.Clone(p.sea.log[next:]), len(p.sea.log)
		grown := p.sea.grown
		p.sea.mu.Unlock()
		if len(have) > 0 {
			continue
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return ctx.Err()
		case <-p.ctx.Done():
			return p.ctx.Err()
		}
	}
}

func (p *port) location(ctx context.Context, owner string) (control.Location, uint64, error) {
	var at located
	err := p.send(ctx, func() {
		p.sea.mu.Lock()
		defer p.sea.mu.Unlock()
		at = p.sea.locations[owner]
	})
	if err != nil {
		return control.Location{}, 0, err
	}
	return at.l, at.revision, nil
}

func (p *port) relocate(ctx context.Context, owner string, l control.Location, revision uint64) error {
	return p.flip(ctx, owner, l, revision, -1)
}

// flip is relocate by a mover that has copied so many writes.
func (p *port) flip(ctx context.Context, owner string, l control.Location, revision uint64, copied int) error {
	var conflict bool
	err := p.send(ctx, func() {
		p.sea.mu.Lock()
		defer p.sea.mu.Unlock()
		at := p.sea.locations[owner]
		if conflict = at.revision != revision; conflict {
			return
		}
		if from := p.sea.siteOf(owner); from != l.Site {
			p.sea.moved(owner, from, l.Site, copied)
		}
		p.sea.revision++
		p.sea.locations[owner] = located{l, p.sea.revision}
	})
	if err == nil && conflict {
		return errConflict
	}
	return err
}

// siteOf is where an owner is, which everybody believes to be at a before it was
// moved. The lock is held.
func (s *sea) siteOf(owner string) string {
	if at := s.locations[owner]; at.revision > 0 {
		return at.l.Site
	}
	return "a"
}
