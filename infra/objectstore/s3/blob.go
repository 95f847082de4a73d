package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/minio/minio-go/v7"

	"penstock/infra/objectstore"
	"penstock/infra/objectstore/s3/wire"
)

// small is how much of an object is read before a part's worth of memory is
// taken for it.
const small = 64 << 10

// buffers are of parts, or of small objects.
type buffers struct{ small, part sync.Pool }

func newBuffers(part int) *buffers {
	of := func(n int) func() any { return func() any { b := make([]byte, n); return &b } }
	return &buffers{small: sync.Pool{New: of(small)}, part: sync.Pool{New: of(part)}}
}

// PutBlob stores all that r yields: in one request if it fits a part, else in an
// upload of parts that is completed when r has ended.
func (b *bucket) PutBlob(ctx context.Context, owner, id string, r io.Reader) (size int64, err error) {
	key, _ := b.layout.blob(owner, id)
	head := b.buffers.small.Get().(*[]byte)
	defer b.buffers.small.Put(head)
	n, whole, err := objectstore.Fill(r, *head)
	if err != nil {
		return 0, err
	}
	if whole {
		return int64(n), b.putWhole(ctx, key, (*head)[:n])
	}
	part := b.buffers.part.Get().(*[]byte)
	defer b.buffers.part.Put(part)
	copy(*part, (*head)[:n])
	more, whole, err := objectstore.Fill(r, (*part)[n:])
	n += more
	if err != nil {
		return 0, err
	}
	if whole {
		return int64(n), b.putWhole(ctx, key, (*part)[:n])
	}
	u := &upload{bucket: b, key: key}
	if err := u.run(ctx, r, *part); err != nil {
		u.abort(ctx)
		return 0, err
	}
	return u.size, nil
}

func (b *bucket) putWhole(ctx context.Context, key string, content []byte) error {
	s := digests(content)
	return b.wire.Send(ctx, "write object", func(ctx context.Context) error {
		_, err := b.putFrom(wire.WithContent(ctx, content), key, bytes.NewReader(content), s, int64(len(content)), minio.PutObjectOptions{})
		return err
	})
}

// upload is an object that is sent in parts.
type upload struct {
	*bucket
	key, id string
	parts   []minio.CompletePart
	size    int64
	doubt   bool // another upload of the key may have been begun without an answer
}

// run sends the full part that is read already and all that follows.
func (u *upload) run(ctx context.Context, r io.Reader, part []byte) error {
	err := u.wire.Send(ctx, "begin upload", func(ctx context.Context) (err error) {
		u.id, err = u.wire.NewMultipartUpload(ctx, u.o.Bucket, u.key, minio.PutObjectOptions{})
		u.doubt = u.doubt || wire.Classify(err) == wire.Unknown
		return err
	})
	if err != nil {
		return err
	}
	for n, last := len(part), false; ; {
		if n > 0 {
			if err := u.part(ctx, part[:n]); err != nil {
				return err
			}
		}
		if last {
			break
		}
		if n, last, err = objectstore.Fill(r, part); err != nil {
			return err
		}
	}
	if err := u.complete(ctx); err != nil {
		return err
	}
	if u.doubt {
		u.forget(ctx)
	}
	return nil
}

func (u *upload) part(ctx context.Context, content []byte) error {
	number := len(u.parts) + 1
	if number > u.o.maxParts {
		return fmt.Errorf("%w: %d parts of %d bytes", ErrParts, u.o.maxParts, u.o.PartSize)
	}
	s := digests(content)
	return u.wire.Send(ctx, "write part", func(ctx context.Context) error {
		p, err := u.wire.PutObjectPart(wire.WithContent(ctx, content), u.o.Bucket, u.key, u.id, number, bytes.NewReader(content), int64(len(content)),
			minio.PutObjectPartOptions{Md5Base64: s.md5, Sha256Hex: s.sha256, DisableContentSha256: true})
		if err != nil {
			return err
		}
		u.parts = append(u.parts, minio.CompletePart{PartNumber: number, ETag: p.ETag})
		u.size += int64(len(content))
		return nil
	})
}

// complete makes an object of the parts. After an attempt that got no answer the
// upload may be gone because the object is there.
func (u *upload) complete(ctx context.Context) error {
	doubt := false
	return u.wire.Send(ctx, "complete upload", func(ctx context.Context) error {
		_, err := u.wire.CompleteMultipartUpload(ctx, u.o.Bucket, u.key, u.id, u.parts, minio.PutObjectOptions{})
		switch wire.Classify(err) {
		case wire.Unknown:
			doubt = true
		case wire.Missing:
			if doubt && u.arrived(ctx) {
				return nil
			}
		}
		return err
	})
}

// arrived reports whether the object is there as it was sent.
func (u *upload) arrived(ctx context.Context) bool {
	var size int64
	err := u.wire.Send(ctx, "look for object", func(ctx context.Context) error {
		info, err := u.wire.StatObject(ctx, u.o.Bucket, u.key, minio.StatObjectOptions{})
		size = info.Size
		return err
	})
	return err == nil && size == u.size
}

// abort removes what was sent, also when the caller's context has ended.
func (u *upload) abort(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), u.o.Timeout)
	defer cancel()
	if u.id != "" {
		if err := u.abortUpload(ctx, u.key, u.id); err != nil {
			u.left(err)
		}
	}
	if u.doubt {
		u.forget(ctx)
	}
}

// forget aborts every upload of the key. A key is used once, so they are all of
// this writer.
func (u *upload) forget(ctx context.Context) {
	var all []uploaded
	err := u.uploads(ctx, u.key, func(f uploaded) error {
		if f.key == u.key {
			all = append(all, f)
		}
		return nil
	})
	for _, f := range all {
		err = errors.Join(err, u.abortUpload(ctx, f.key, f.id))
	}
	if err != nil {
		u.left(err)
	}
}

func (u *upload) left(err error) {
	u.o.Count("upload-left", 1)
	u.o.Logger.Warn().Str("reason", u.wire.Safe(err).Error()).Str("key", u.key).
		Msg("parts of a broken upload are left until the owner's leftovers are collected")
}

func (b *bucket) abortUpload(ctx context.Context, key, id string) error {
	err := b.wire.Send(ctx, "abort upload", func(ctx context.Context) error {
		return b.wire.AbortMultipartUpload(ctx, b.o.Bucket, key, id)
	})
	if wire.Classify(err) == wire.Missing {
		return nil
	}
	return err
}

// DeleteBlob deletes an object, and the uploads that Blobs has found of it. A
// plain object that somebody has replaced is theirs and stays.
func (b *bucket) DeleteBlob(ctx context.Context, owner, id string) error {
	key, etag := b.layout.blob(owner, id)
	if etag != "" {
		var have string
		err := b.wire.Send(ctx, "look for object", func(ctx context.Context) error {
			info, err := b.wire.StatObject(ctx, b.o.Bucket, key, minio.StatObjectOptions{})
			have = info.ETag
			return err
		})
		switch {
		case wire.Classify(err) == wire.Missing:
			return nil
		case err != nil:
			return err
		case have != etag:
			b.o.Count("overwritten-left", 1)
			b.o.Logger.Warn().Str("key", key).Msg("an object to be deleted was replaced by a writer who does not go through Penstock, and stays")
			return nil
		}
	}
	err := b.wire.Send(ctx, "delete object", func(ctx context.Context) error {
		return b.wire.RemoveObject(ctx, b.o.Bucket, key, minio.RemoveObjectOptions{})
	})
	if err != nil && wire.Classify(err) != wire.Missing {
		return err
	}
	for _, upload := range b.partial.take(key) {
		if err := b.abortUpload(ctx, key, upload); err != nil {
			b.partial.add(key, upload)
			return err
		}
	}
	return nil
}

// partial remembers which uploads Blobs has found, by key, so that a deletion
// need not look for them.
type partial struct {
	mu  sync.Mutex
	ids map[string][]string
}

func (p *partial) add(key, id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ids == nil {
		p.ids = map[string][]string{}
	}
	for _, have := range p.ids[key] {
		if have == id {
			return
		}
	}
	p.ids[key] = append(p.ids[key], id)
}

func (p *partial) take(key string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	ids := p.ids[key]
	delete(p.ids, key)
	return ids
}
