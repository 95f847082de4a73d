package jetstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"penstock/infra/objectstore"
	"penstock/infra/objectstore/manifest"
	"penstock/schemas/subject"
)

// backend is a manifest.Backend over two buckets.
type backend struct {
	bucket  string
	js      jetstream.JetStream
	kv      jetstream.KeyValue
	objects jetstream.ObjectStore
	stream  jetstream.Stream // of the object bucket
	chunk   int              // bytes
	durable bool
	line    *line
}

var _ manifest.Backend = (*backend)(nil)

// Capabilities: sequences make a barrier.
func (b *backend) Capabilities() objectstore.Capabilities {
	return objectstore.Capabilities{Barrier: true, Durable: b.durable}
}

// Get reads the owner's key.
func (b *backend) Get(ctx context.Context, owner string) ([]byte, string, error) {
	ctx, release := b.line.within(ctx)
	defer release()
	e, err := b.kv.Get(ctx, subject.Encode(owner))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, "", objectstore.ErrNoOwner
	}
	if err != nil {
		return nil, "", cause(ctx, err)
	}
	return e.Value(), strconv.FormatUint(e.Revision(), 10), nil
}

// Set writes the owner's key if its last sequence is the revision.
func (b *backend) Set(ctx context.Context, owner string, body []byte, revision string) (string, error) {
	ctx, release := b.line.within(ctx)
	defer release()
	var next uint64
	var err error
	if revision == "" {
		next, err = b.kv.Create(ctx, subject.Encode(owner), body)
	} else {
		last, e := strconv.ParseUint(revision, 10, 64)
		if e != nil {
			return "", fmt.Errorf("revision %.40q: %w", revision, e)
		}
		next, err = b.kv.Update(ctx, subject.Encode(owner), body, last)
	}
	var api *jetstream.APIError
	if errors.Is(err, jetstream.ErrKeyExists) ||
		errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence {
		return "", fmt.Errorf("%w: %w", manifest.ErrConflict, err)
	}
	if err != nil {
		return "", cause(ctx, err)
	}
	return strconv.FormatUint(next, 10), nil
}

// Owners lists the keys, and then the owners of plain objects that have none.
func (b *backend) Owners(ctx context.Context, fn func(string) error) error {
	plain := map[string]bool{}
	err := b.names(ctx, func(owner, _, _ string) error {
		plain[owner] = true
		return nil
	})
	if err != nil {
		return err
	}
	err = b.keys(ctx, func(owner string) error {
		delete(plain, owner)
		return fn(owner)
	})
	if err != nil {
		return err
	}
	for owner := range plain {
		if err := fn(owner); err != nil {
			return err
		}
	}
	return nil
}

// keys reads the bucket's keys once. nats.go's own lister can't be stopped
// without leaving a goroutine behind, and takes a lost connection for the end.
func (b *backend) keys(ctx context.Context, fn func(owner string) error) error {
	w, err := b.kv.WatchAll(ctx, jetstream.IgnoreDeletes(), jetstream.MetaOnly())
	if err != nil {
		return fmt.Errorf("list owners: %w", err)
	}
	defer func() { _ = w.Stop() }() // it may have ended by itself
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("list owners: %w", ctx.Err())
		case e, open := <-w.Updates():
			if !open {
				return fmt.Errorf("list owners: %w", nats.ErrConnectionClosed)
			}
			if e == nil { // that was all
				return nil
			}
			owner, err := subject.Decode(e.Key())
			if err != nil {
				continue // foreign
			}
			if err := fn(owner); err != nil {
				return err
			}
		}
	}
}

const (
	// chunkSize is that of nats.go's object store.
	chunkSize = 128 << 10
	// window is how many chunks are on their way at a time.
	window = 4
	// endHeader stands on a blob's last chunk, with the size of the whole.
	endHeader = "Penstock-End"
)

func (b *backend) chunks(owner, id string) string {
	return "$O." + b.bucket + ".C." + subject.Encode(owner) + "." + id
}

// PutBlob publishes chunk after chunk. Those of one connection arrive in order;
// each is acknowledged, or the blob is none.
func (b *backend) PutBlob(ctx context.Context, owner, id string, r io.Reader) (int64, error) {
	ctx, release := b.line.within(ctx)
	defer release()
	size, err := b.putBlob(ctx, b.chunks(owner, id), r)
	return size, cause(ctx, err)
}

func (b *backend) putBlob(ctx context.Context, to string, r io.Reader) (int64, error) {
	p := publishing{js: b.js}
	var size int64
	buf := make([]byte, b.chunk)
	n, last, err := objectstore.Fill(r, buf)
	for err == nil {
		m := &nats.Msg{Subject: to, Data: buf[:n]}
		size += int64(n)
		if last {
			m.Header = nats.Header{endHeader: {strconv.FormatInt(size, 10)}}
			return size, p.finish(ctx, m)
		}
		// A chunk is the last one if nothing follows: look ahead.
		buf = make([]byte, b.chunk)
		if n, last, err = objectstore.Fill(r, buf); err == nil && n == 0 && last {
			m.Header = nats.Header{endHeader: {strconv.FormatInt(size, 10)}}
			return size, p.finish(ctx, m)
		}
		if err == nil {
			err = p.add(ctx, m)
		}
	}
	return size, errors.Join(err, p.wait(ctx, 0))
}

// publishing is chunks on their way.
type publishing struct {
	js    jetstream.JetStream
	acks  []jetstream.PubAckFuture
	first error
}

func (p *publishing) add(ctx context.Context, m *nats.Msg) error {
	if err := p.wait(ctx, window-1); err != nil {
		return err
	}
	// The client would send a chunk again that no server took, behind those that
	// came after it. So a blob breaks off when its bucket has no leader.
	f, err := p.js.PublishMsgAsync(m, jetstream.WithRetryAttempts(0))
	if err != nil {
		return fmt.Errorf("publish chunk: %w", err)
	}
	p.acks = append(p.acks, f)
	return nil
}

// wait waits until at most n chunks are not acknowledged.
func (p *publishing) wait(ctx context.Context, n int) error {
	for len(p.acks) > n && p.first == nil {
		select {
		case <-p.acks[0].Ok():
		case err := <-p.acks[0].Err():
			p.first = fmt.Errorf("publish chunk: %w", err)
		case <-ctx.Done():
			p.first = ctx.Err()
		}
		p.acks = p.acks[1:]
	}
	return p.first
}

// finish publishes the last chunk when all others are stored.
func (p *publishing) finish(ctx context.Context, m *nats.Msg) error {
	if err := p.wait(ctx, 0); err != nil {
		return err
	}
	if _, err := p.js.PublishMsg(ctx, m); err != nil {
		return fmt.Errorf("publish chunk: %w", err)
	}
	return nil
}

// OpenBlob finds the first chunk.
func (b *backend) OpenBlob(ctx context.Context, owner, id string) (io.ReadCloser, error) {
	r := &blob{ctx: ctx, line: b.line, stream: b.stream, subject: b.chunks(owner, id), size: -1}
	if nuid, _, size, ok := parsePlain(id); ok {
		r.subject, r.size = "$O."+b.bucket+".C."+nuid, size
		if size == 0 {
			return r, nil
		}
	}
	if err := r.next(); err != nil {
		return nil, err
	}
	return r, nil
}

// blob reads chunks, one request each.
type blob struct {
	ctx     context.Context //nolint:containedctx // A reader has no other way to be given one.
	line    *line
	stream  jetstream.Stream
	subject string
	size    int64 // of the whole; unknown (-1) until the last chunk says it
	read    int64
	from    uint64 // sequence after the last chunk
	data    []byte
}

func (r *blob) Read(p []byte) (int, error) {
	for len(r.data) == 0 {
		if r.size >= 0 && r.read >= r.size {
			if r.read > r.size {
				return 0, fmt.Errorf("blob has %d bytes, not %d: %w", r.read, r.size, objectstore.ErrCorrupt)
			}
			return 0, io.EOF
		}
		if err := r.next(); err != nil {
			if errors.Is(err, objectstore.ErrNoObject) {
				err = fmt.Errorf("blob was deleted while it was read: %w", io.ErrUnexpectedEOF)
			}
			return 0, err
		}
	}
	n := copy(p, r.data)
	r.data = r.data[n:]
	return n, nil
}

func (r *blob) next() error {
	ctx, release := r.line.within(r.ctx)
	defer release()
	m, err := r.stream.GetMsg(ctx, max(r.from, 1), jetstream.WithGetMsgSubject(r.subject))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return fmt.Errorf("%w", objectstore.ErrNoObject)
	}
	if err != nil {
		return fmt.Errorf("read chunk: %w", cause(ctx, err))
	}
	r.from, r.data = m.Sequence+1, m.Data
	r.read += int64(len(m.Data))
	if end := m.Header.Get(endHeader); end != "" {
		if r.size, err = strconv.ParseInt(end, 10, 64); err != nil {
			return fmt.Errorf("last chunk says %.40q: %w", end, objectstore.ErrCorrupt)
		}
	}
	return nil
}

func (*blob) Close() error { return nil }

// DeleteBlob purges the chunks.
func (b *backend) DeleteBlob(ctx context.Context, owner, id string) error {
	if nuid, name, _, ok := parsePlain(id); ok {
		return b.deletePlain(ctx, nuid, name)
	}
	ctx, release := b.line.within(ctx)
	defer release()
	if err := b.stream.Purge(ctx, jetstream.WithPurgeSubject(b.chunks(owner, id))); err != nil {
		return fmt.Errorf("delete blob: %w", cause(ctx, err))
	}
	return nil
}

// Blobs lists the subjects of an owner's chunks. The ids say how old they are.
func (b *backend) Blobs(ctx context.Context, owner string, fn func(string, time.Time) error) error {
	prefix := b.chunks(owner, "")
	subjects, err := b.subjects(ctx, prefix+"*")
	if err != nil {
		return fmt.Errorf("list blobs: %w", err)
	}
	for s := range subjects {
		id := s[len(prefix):]
		made, ok := manifest.Made(id)
		if !ok {
			continue // foreign
		}
		if err := fn(id, made); err != nil {
			return err
		}
	}
	return nil
}

// subjects lists the object bucket's subjects that a filter takes.
func (b *backend) subjects(ctx context.Context, filter string) (map[string]uint64, error) {
	ctx, release := b.line.within(ctx)
	defer release()
	info, err := b.stream.Info(ctx, jetstream.WithSubjectFilter(filter))
	if err != nil {
		return nil, cause(ctx, err)
	}
	return info.State.Subjects, nil
}
