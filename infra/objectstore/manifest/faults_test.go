package manifest

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
)

var errLine = errors.New("the line is cut")

// faulty is a Backend whose line is cut now and then: before a request arrived,
// after it was carried out, or while it is still under way and arrives later.
type faulty struct {
	*Memory
	mu      sync.Mutex
	rand    *rand.Rand
	off     bool
	percent int      // of the requests that go wrong
	late    []func() // requests under way
	faults  int
}

func newFaulty(seed uint64, percent int) *faulty {
	return &faulty{Memory: NewMemory(nil), rand: rand.New(rand.NewPCG(seed, 7)), percent: percent}
}

// heal ends the faults; what is under way arrives.
func (f *faulty) heal() {
	f.mu.Lock()
	f.off = true
	late := f.late
	f.late = nil
	f.mu.Unlock()
	for _, do := range late {
		do()
	}
}

// draw returns what goes wrong with a request: nothing, or where; and lets some
// of those under way arrive.
func (f *faulty) draw(kinds int) int {
	f.mu.Lock()
	if f.off {
		f.mu.Unlock()
		return 0
	}
	var arrive []func()
	for len(f.late) > 0 && f.rand.IntN(4) == 0 {
		arrive = append(arrive, f.late[0])
		f.late = f.late[1:]
	}
	kind := 0
	if f.rand.IntN(100) < f.percent {
		kind = 1 + f.rand.IntN(kinds)
		f.faults++
	}
	f.mu.Unlock()
	for _, do := range arrive {
		do()
	}
	return kind
}

func (f *faulty) Get(ctx context.Context, owner string) ([]byte, string, error) {
	if f.draw(1) > 0 {
		return nil, "", errLine
	}
	return f.Memory.Get(ctx, owner)
}

func (f *faulty) Set(ctx context.Context, owner string, body []byte, revision string) (string, error) {
	switch f.draw(3) {
	case 1:
		return "", errLine
	case 2:
		_, _ = f.Memory.Set(ctx, owner, body, revision)
		return "", errLine
	case 3:
		f.mu.Lock()
		defer f.mu.Unlock()
		f.late = append(f.late, func() { _, _ = f.Memory.Set(context.Background(), owner, body, revision) })
		return "", errLine
	}
	return f.Memory.Set(ctx, owner, body, revision)
}

func (f *faulty) PutBlob(ctx context.Context, owner, id string, r io.Reader) (int64, error) {
	kind := f.draw(2)
	if kind == 1 {
		return 0, errLine
	}
	n, err := f.Memory.PutBlob(ctx, owner, id, r)
	if kind == 2 {
		return 0, errLine
	}
	return n, err
}

func (f *faulty) OpenBlob(ctx context.Context, owner, id string) (io.ReadCloser, error) {
	if f.draw(1) > 0 {
		return nil, errLine
	}
	return f.Memory.OpenBlob(ctx, owner, id)
}

func (f *faulty) DeleteBlob(ctx context.Context, owner, id string) error {
	if f.draw(1) > 0 {
		return errLine
	}
	return f.Memory.DeleteBlob(ctx, owner, id)
}
