package coding

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"penstock/infra/clock"
	"penstock/infra/objectstore/s3/wire"
	"penstock/pipeline/demo/load"
)

const (
	accessKey = "visitor"
	bucket    = "album"
	// maxLag is how late a request may be sent: delays count from when it was due, but
	// one that is later than this shows nothing.
	maxLag = 3 * time.Second
	// underWay is how many requests of a coder's clients may be under way.
	underWay = 400
	// longest is how long a client waits for an answer.
	longest = 30 * time.Second
	// maxExamples is how many failures are told.
	maxExamples = 3
)

// people are the clients of a coder. What they write says of which object and version it
// is, so that a reader can tell what it has read.
type people struct {
	clock    clock.Clock
	seed     uint64
	core     *minio.Core
	web      *http.Transport
	seen     load.Samples[shot]
	refusals load.Samples[shot]

	mu      sync.Mutex
	begun   [objects]uint32 // the newest version that somebody began to write
	acked   [objects]uint32 // the newest that was acknowledged
	writing [objects]bool
	failed  int
	wrong   int
	told    []string // some of the failures
}

// shot is what a request is told from others by.
type shot struct{ write bool }

func newPeople(s *show, where, secret string) (*people, error) {
	web, err := minio.DefaultTransport(false)
	if err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	// Idle connections are given up before a coder would.
	web.MaxIdleConnsPerHost, web.MaxIdleConns, web.IdleConnTimeout = underWay, underWay, 20*time.Second
	core, err := minio.NewCore(where, &minio.Options{
		Creds: credentials.NewStaticV4(accessKey, secret, ""), Region: "us-east-1", Transport: web,
		MaxRetries: 1, // A refusal is a refusal.
	})
	if err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	return &people{clock: s.clock, seed: s.Seed, core: core, web: web}, nil
}

func (p *people) close() { p.web.CloseIdleConnections() }

// content is version n of an object.
func (p *people) content(object int, n uint32) []byte {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], p.seed)
	binary.LittleEndian.PutUint32(key[8:], uint32(object))
	binary.LittleEndian.PutUint32(key[12:], n)
	b := make([]byte, objectBytes)
	_, _ = rand.NewChaCha8(key).Read(b) // It never fails.
	binary.LittleEndian.PutUint32(b, uint32(object))
	binary.LittleEndian.PutUint32(b[4:], n)
	return b
}

// fill writes the first version of each object.
func (p *people) fill(ctx context.Context) error {
	if err := p.core.MakeBucket(ctx, bucket, minio.MakeBucketOptions{}); err != nil {
		return fmt.Errorf("bucket: %w", err)
	}
	for i := range objects {
		if err := p.write(ctx, i); err != nil {
			return fmt.Errorf("object %d: %w", i, err)
		}
	}
	return nil
}

// draw returns the load of a coder: what is asked for is drawn from rng, and so the same
// for all coders.
func (p *people) draw(writes float64, rng *rand.Rand) func(load.Shot) func(context.Context) {
	return func(s load.Shot) func(context.Context) {
		object, write := rng.IntN(objects), rng.Float64() < writes
		return func(ctx context.Context) {
			do := p.read
			if write {
				do = p.write
			}
			if err := do(ctx, object); ctx.Err() == nil { // Else the run was given up.
				p.note(s.Due, shot{write}, err)
			}
		}
	}
}

// note keeps what came of a request.
func (p *people) note(due time.Time, s shot, err error) {
	took := p.clock.Now().Sub(due)
	switch {
	case err == nil:
		p.seen.Add(due, took, s)
	case wire.Classify(err) == wire.Busy:
		p.refusals.Add(due, took, s)
	default:
		p.fail(err)
	}
}

func (p *people) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed++
	if errors.Is(err, errWrong) {
		p.wrong++
	}
	if len(p.told) < maxExamples {
		p.told = append(p.told, err.Error())
	}
}

// failures are how many requests failed, how many reads of them were wrong, and some of
// them.
func (p *people) failures() (failed, wrong int, told []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed, p.wrong, append([]string(nil), p.told...)
}

// write overwrites an object, or the next one that nobody is writing.
func (p *people) write(ctx context.Context, object int) error {
	p.mu.Lock()
	for p.writing[object] {
		object = (object + 1) % objects
	}
	p.writing[object] = true
	p.begun[object]++
	n := p.begun[object]
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	_, err := p.core.Client.PutObject(ctx, bucket, strconv.Itoa(object), bytes.NewReader(p.content(object, n)), objectBytes, minio.PutObjectOptions{DisableMultipart: true})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writing[object] = false
	if err == nil {
		p.acked[object] = n
	}
	return err
}

// read reads an object and looks at each of its bytes.
func (p *people) read(ctx context.Context, object int) error {
	p.mu.Lock()
	least := p.acked[object]
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	body, _, _, err := p.core.GetObject(ctx, bucket, strconv.Itoa(object), minio.GetObjectOptions{})
	if err != nil {
		return err
	}
	defer body.Close()
	b := make([]byte, 0, objectBytes+bytes.MinRead)
	got := bytes.NewBuffer(b)
	if _, err := got.ReadFrom(io.LimitReader(body, objectBytes+1)); err != nil {
		return fmt.Errorf("body: %w", err)
	}
	p.mu.Lock()
	most := p.begun[object]
	p.mu.Unlock()
	return p.check(object, got.Bytes(), least, most)
}

// check says whether b is a version of an object, from least to most.
func (p *people) check(object int, b []byte, least, most uint32) error {
	if len(b) != objectBytes {
		return fmt.Errorf("object %d has %d bytes: %w", object, len(b), errWrong)
	}
	of, n := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
	if of != uint32(object) || n < least || n > most {
		return fmt.Errorf("object %d is version %d of object %d, expected %d to %d: %w", object, n, of, least, most, errWrong)
	}
	if !bytes.Equal(b, p.content(object, n)) {
		return fmt.Errorf("object %d, version %d: %w", object, n, errWrong)
	}
	return nil
}
