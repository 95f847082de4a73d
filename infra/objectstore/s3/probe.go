package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"

	"penstock/infra/objectstore/s3/wire"
)

const (
	// rivals is how many writers race in a trial, rounds how often.
	rivals = 6
	rounds = 2
	// trialSize is more than what lies in buffers on the way, so that a request
	// has begun at the service when half of its content is sent.
	trialSize = 32 << 10
	// trialWait is how long rivals wait for each other: a service may take fewer
	// requests at once.
	trialWait = 2 * time.Second
	// tidyWithin is how long the deletion of a trial's object may take.
	tidyWithin = 5 * time.Second
	// leftAfter is when what a broken trial left is deleted by another.
	leftAfter = time.Hour
)

// errNotHonoured: the service doesn't do what a barrier needs, and how that showed.
type errNotHonoured struct{ why string }

func (e errNotHonoured) Error() string { return e.why }

// probe finds out whether conditional writes are atomic. A service that fails is
// no service that doesn't compare: then there is an error.
func (b *bucket) probe(ctx context.Context) error {
	log := b.o.Logger.With().Str("bucket", b.o.Bucket).Str("prefix", b.o.Prefix).Logger()
	for attempt := 0; ; attempt++ {
		err := b.trial(ctx)
		var no errNotHonoured
		switch {
		case err == nil:
			b.barrier = true
			b.sweepProbes(ctx)
			log.Info().Int("rivals", rivals).Int("rounds", rounds).Msg("the service honours conditional writes: the store has a write barrier")
			return nil
		case errors.As(err, &no):
			log.Warn().Str("why", no.why).Msg("the service does not honour conditional writes: the store has no write barrier")
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("try conditional writes: %w", ctx.Err())
		}
		if a := wire.Classify(err); a != wire.Unknown && a != wire.Busy || attempt+1 >= b.o.Attempts {
			return fmt.Errorf("try conditional writes: %w", b.wire.Safe(err))
		}
		if err := b.wire.Rest(ctx, attempt, err); err != nil {
			return fmt.Errorf("try conditional writes: %w", err)
		}
	}
}

// trial is one whole trial on a key of its own.
func (b *bucket) trial(ctx context.Context) error {
	key := b.layout.probes() + element(nonce())
	defer b.deleteProbe(ctx, key)
	var first string
	etag := ""
	for range rounds {
		next, err := b.race(ctx, key, etag)
		if err != nil {
			return err
		}
		if first == "" {
			first = next
		}
		etag = next
	}
	// One after another, since a race may be won by chance.
	var there, stale minio.PutObjectOptions
	there.SetMatchETagExcept("*")
	stale.SetMatchETag(first)
	if err := b.mustConflict(ctx, key, there, "If-None-Match: * on an object that is there"); err != nil {
		return err
	}
	return b.mustConflict(ctx, key, stale, "If-Match with the ETag of before")
}

// mustConflict writes on a condition that isn't met.
func (b *bucket) mustConflict(ctx context.Context, key string, o minio.PutObjectOptions, what string) error {
	_, err := b.putBytes(ctx, key, []byte(nonce()), o)
	switch wire.Classify(err) {
	case wire.Conflict:
		return nil
	case wire.Done:
		return errNotHonoured{what + " was let through"}
	default:
		return b.unsupported(err)
	}
}

// race lets rivals write one object on the same condition, none whole before the
// service has begun with all, so that one that compares before it has the content
// has done so for all. It returns the winner's ETag.
func (b *bucket) race(ctx context.Context, key, etag string) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	start := newGate(rivals)
	go func() {
		if b.o.Clock.Sleep(ctx, trialWait) == nil {
			start.open()
		}
	}()
	type result struct {
		etag string
		err  error
	}
	results := make([]result, rivals)
	contents := make([][]byte, rivals)
	var wg sync.WaitGroup
	for i := range rivals {
		contents[i] = bytes.Repeat([]byte(nonce()), trialSize/len(nonce())+1)[:trialSize]
		wg.Go(func() {
			arrive := sync.OnceFunc(start.arrive)
			defer arrive() // one that was refused early is not waited for
			body := &halting{r: bytes.NewReader(contents[i]), half: trialSize / 2, arrive: arrive, start: start}
			results[i].etag, results[i].err = b.rival(ctx, key, etag, contents[i], body)
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return "", err
	}
	won := -1
	for i, r := range results {
		switch a := wire.Classify(r.err); {
		case a == wire.Done && won >= 0:
			return "", errNotHonoured{fmt.Sprintf("of %d writers with one condition more than one was let through", rivals)}
		case a == wire.Done:
			won = i
		case a != wire.Conflict && a != wire.Busy && a != wire.Missing:
			return "", b.unsupported(r.err)
		}
	}
	if won < 0 {
		return "", errNobody
	}
	return b.winner(ctx, key, contents[won], results[won].etag)
}

// errNobody: all were refused, which S3 allows when writes meet.
var errNobody = minio.ErrorResponse{StatusCode: http.StatusConflict, Code: "NobodyWon", Message: "of several writers none was let through"}

// winner makes sure that the object is the one whose writer was told so.
func (b *bucket) winner(ctx context.Context, key string, want []byte, etag string) (string, error) {
	var got []byte
	err := b.wire.Send(ctx, "read back", func(ctx context.Context) error {
		r, info, _, err := b.wire.GetObject(ctx, b.o.Bucket, key, minio.GetObjectOptions{})
		if err != nil {
			return err
		}
		if etag == "" {
			etag = info.ETag
		}
		got, err = io.ReadAll(r)
		return errors.Join(err, r.Close())
	})
	if err != nil {
		return "", err
	}
	if !bytes.Equal(got, want) {
		return "", errNotHonoured{"the writer that was let through isn't the one that wrote"}
	}
	return etag, nil
}

func (b *bucket) rival(ctx context.Context, key, etag string, content []byte, body io.Reader) (string, error) {
	var o minio.PutObjectOptions
	if etag == "" {
		o.SetMatchETagExcept("*")
	} else {
		o.SetMatchETag(etag)
	}
	info, err := b.putFrom(wire.Awaited(ctx), key, body, digests(content), int64(len(content)), o)
	return info.ETag, err
}

// unsupported tells a service that refuses conditions from one that fails.
func (*bucket) unsupported(err error) error {
	var e minio.ErrorResponse
	if errors.As(err, &e) && (e.StatusCode == http.StatusNotImplemented ||
		e.StatusCode == http.StatusBadRequest && strings.Contains(strings.ToLower(e.Code+e.Message), "match")) {
		return errNotHonoured{"it takes no conditions: " + e.Code}
	}
	return err
}

// deleteProbe tries once, and not for long: a service that is away would keep who
// opens the store from hearing so. If it fails, another trial's sweep does it.
func (b *bucket) deleteProbe(ctx context.Context, key string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(b.o.Timeout, tidyWithin))
	defer cancel()
	_ = b.wire.RemoveObject(ctx, b.o.Bucket, key, minio.RemoveObjectOptions{})
}

// sweepProbes deletes what trials left that were cut off.
func (b *bucket) sweepProbes(ctx context.Context) {
	var old []string
	// If it fails, another's trial does it: nothing depends on it.
	_ = b.list(ctx, b.layout.probes(), false, func(info minio.ObjectInfo) error {
		if b.o.Clock.Now().Sub(info.LastModified) > leftAfter {
			old = append(old, info.Key)
		}
		return nil
	})
	for _, key := range old {
		b.deleteProbe(ctx, key)
	}
}

// gate opens when all have arrived, or when it is opened.
type gate struct {
	mu      sync.Mutex
	waiting int
	opened  chan struct{}
}

func newGate(n int) *gate { return &gate{waiting: n, opened: make(chan struct{})} }

func (g *gate) arrive() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.waiting--; g.waiting == 0 {
		close(g.opened)
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.waiting > 0 {
		g.waiting = 0
		close(g.opened)
	}
}

// halting is content whose second half comes when the gate opens.
type halting struct {
	r      *bytes.Reader
	half   int
	arrive func()
	start  *gate
}

func (h *halting) Read(p []byte) (int, error) {
	left := h.r.Len() - h.half
	if left > 0 {
		return h.r.Read(p[:min(len(p), left)])
	}
	h.arrive()
	<-h.start.opened
	return h.r.Read(p)
}
