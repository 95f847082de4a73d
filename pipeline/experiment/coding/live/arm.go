package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"penstock/consumers/decider/coding/threshold"
	"penstock/consumers/executor/coder"
	"penstock/consumers/executor/coder/chunks"
	"penstock/consumers/executor/coder/chunks/shaped"
	"penstock/consumers/executor/coder/codes"
	"penstock/schemas/control"
)

// arm is a policy with its coder and its store.
type arm struct {
	policy
	o       *Options
	table   control.CodingTable
	chooser *counting
	store   *shaped.Store
	coder   *coder.Coder
	objects [][]byte
	stop    func() error

	mu   sync.Mutex
	took []answer // of the load that runs
	bad  []error  // reads that failed, but for those that were refused
	full int      // refused, of those that count
}

// answer is one to a request; the delays of those that count, count.
type answer struct {
	at     time.Time
	took   time.Duration
	counts bool
}

const bucket = "sweep"

// raise opens the coder of a policy and fills its store, which has no delays yet.
func (o *Options) raise(ctx context.Context, number int, p policy, objects [][]byte) (_ *arm, err error) {
	a := &arm{policy: p, o: o, objects: objects}
	if a.table, err = o.table(p); err != nil {
		return nil, err
	}
	chooser, err := codes.New(codes.Options{Default: a.table})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.name, err)
	}
	a.chooser = &counting{Chooser: chooser}
	a.store = shaped.New(shaped.Options{Inner: chunks.NewMemory("store-" + strconv.Itoa(number)), Seed: o.Seed + uint64(number), Clock: o.Clock})
	a.coder, err = coder.Open(ctx, coder.Options{
		Name: "sweep-" + strconv.Itoa(number), State: filepath.Join(o.Dir, "coder-"+strconv.Itoa(number)), Stores: []chunks.Store{a.store},
		Connections: connections, MaxWaiting: maxWaiting, Chooser: a.chooser, Clock: o.Clock, Logger: &o.Logger, TaskTimeout: patience,
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.name, err)
	}
	running, end := context.WithCancel(context.WithoutCancel(ctx))
	ran := make(chan error, 1)
	go func() { ran <- a.coder.Run(running) }()
	a.stop = sync.OnceValue(func() error {
		end()
		return errors.Join(<-ran, a.coder.Close())
	})
	if err := a.fill(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", p.name, err), a.stop())
	}
	d := shaped.Delays{Read: shaped.Exponential(delay(o.model(threshold.DefaultRead))), Write: shaped.Exponential(delay(o.model(threshold.DefaultWrite)))}
	a.store.SetDelays(d)
	return a, nil
}

// contents are the objects that all coders hold.
func (o *Options) contents() [][]byte {
	out := make([][]byte, o.Objects)
	for i := range out {
		out[i] = make([]byte, o.Bytes)
		var key [32]byte
		key[0], key[1], key[2], key[3] = byte(o.Seed), byte(o.Seed>>8), byte(i), byte(i>>8)
		_, _ = rand.NewChaCha8(key).Read(out[i]) // It never fails.
	}
	return out
}

// fill writes the objects and waits until each is in its intended coding.
func (a *arm) fill(ctx context.Context) error {
	if err := a.coder.CreateBucket(ctx, bucket); err != nil {
		return err
	}
	for i, b := range a.objects {
		if _, err := a.coder.Put(ctx, coder.PutInput{Bucket: bucket, Key: strconv.Itoa(i), Body: bytes.NewReader(b), Size: int64(len(b))}); err != nil {
			return fmt.Errorf("object %d: %w", i, err)
		}
	}
	late := a.o.Clock.Now().Add(patience)
	for {
		s, err := a.coder.Stats(ctx)
		if err != nil {
			return err
		}
		if s.Unintended == 0 && s.Deletes == s.Repeats {
			return nil
		}
		if a.o.Clock.Now().After(late) {
			return fmt.Errorf("%d objects are not in their intended coding, %d blobs not deleted, after %v", s.Unintended, s.Deletes-s.Repeats, patience)
		}
		if err := a.o.Clock.Sleep(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
}

// read reads an object and compares each of its bytes.
func (a *arm) read(ctx context.Context, number int) error {
	r, err := a.coder.Get(ctx, coder.GetInput{Bucket: bucket, Key: strconv.Itoa(number)})
	if err != nil {
		return err
	}
	same := &comparing{left: a.objects[number]}
	_, err = r.WriteTo(same)
	if err = errors.Join(err, r.Close()); err != nil {
		return err
	}
	if len(same.left) > 0 {
		return fmt.Errorf("object %d ends %d bytes early: %w", number, len(same.left), errWrong)
	}
	return nil
}

// comparing is a writer that takes only the bytes that are expected.
type comparing struct{ left []byte }

var _ io.Writer = (*comparing)(nil)

// Write implements io.Writer.
func (c *comparing) Write(b []byte) (int, error) {
	if len(b) > len(c.left) || !bytes.Equal(b, c.left[:len(b)]) {
		return 0, errWrong
	}
	c.left = c.left[len(b):]
	return len(b), nil
}

// mostTold is how many failures are kept.
const mostTold = 5

// note keeps what came of a read.
func (a *arm) note(due time.Time, counts bool, err error) {
	now := a.o.Clock.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case err == nil:
		a.took = append(a.took, answer{now, now.Sub(due), counts})
	case errors.Is(err, coder.ErrBusy):
		if counts {
			a.full++
		}
	case len(a.bad) < mostTold:
		a.bad = append(a.bad, err)
	}
}

// take hands out what was noted since the last time.
func (a *arm) take() (answers []answer, refused int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	answers, refused = a.took, a.full
	a.took, a.full = nil, 0
	return answers, refused
}
