package s3

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"sync"

	"github.com/minio/minio-go/v7"

	"penstock/consumers/executor/coder/chunks"
	"penstock/infra/objectstore/s3/wire"
)

// Put implements chunks.Store.
func (s *Store) Put(ctx context.Context, key string, r io.Reader, size int64) error {
	if err := chunks.CheckKey(key); err != nil {
		return err
	}
	if size > int64(s.o.PartSize) {
		u := &upload{Store: s, key: key, object: s.object(key)}
		if err := u.run(ctx, r, size); err != nil {
			u.giveUp(ctx)
			return fmt.Errorf("put %s: %w", key, err)
		}
		return nil
	}
	if size < 0 {
		return fmt.Errorf("put %s: %w: %d bytes", key, chunks.ErrSize, size)
	}
	content, release := s.buffers.get(int(size))
	defer release()
	if err := chunks.Whole(ctx, r, content); err != nil {
		return fmt.Errorf("put %s: %w", key, err)
	}
	return s.client.Send(ctx, "put "+key, func(ctx context.Context) error {
		return s.putWhole(ctx, s.object(key), content)
	})
}

func (s *Store) putWhole(ctx context.Context, object string, content []byte) error {
	_, err := s.client.PutObject(wire.WithContent(ctx, content), s.o.Bucket, object, bytes.NewReader(content), int64(len(content)),
		"", digest(content), minio.PutObjectOptions{DisableContentSha256: true}) // it needn't be signed in pieces
	inDoubt(ctx, err)
	return err
}

// inDoubt tells that a request that would make an object may be carried out later.
func inDoubt(ctx context.Context, err error) {
	if a := wire.Classify(err); a == wire.Unknown || a == wire.Busy {
		chunks.Doubt(ctx)
	}
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// upload is a blob that is sent in parts.
type upload struct {
	*Store
	key, object, id string
	parts           []minio.CompletePart
	size            int64
}

func (u *upload) run(ctx context.Context, r io.Reader, size int64) error {
	part, release := u.buffers.get(u.o.PartSize)
	defer release()
	r = chunks.Bounded(ctx, r)
	for u.size < size {
		n := min(int64(u.o.PartSize), size-u.size)
		if err := chunks.Fill(r, part[:n]); err != nil {
			return err
		}
		if len(u.parts) == 0 {
			if size > maxParts*int64(u.o.PartSize) {
				return fmt.Errorf("%w: %d bytes in parts of %d", ErrTooLarge, size, u.o.PartSize)
			}
			if err := u.begin(ctx); err != nil {
				return err
			}
		}
		if u.size+n == size {
			if err := chunks.Exactly(ctx, io.Discard, r, 0); err != nil {
				return err
			}
		}
		if err := u.part(ctx, part[:n]); err != nil {
			return err
		}
		u.size += n
	}
	return u.complete(ctx)
}

func (u *upload) begin(ctx context.Context) error {
	return u.client.Send(ctx, "begin upload", func(ctx context.Context) (err error) {
		u.id, err = u.client.NewMultipartUpload(ctx, u.o.Bucket, u.object, minio.PutObjectOptions{})
		if wire.Classify(err) == wire.Unknown {
			u.o.Count("upload-left", 1) // it may have begun
		}
		return err
	})
}

func (u *upload) part(ctx context.Context, content []byte) error {
	number, sum := len(u.parts)+1, digest(content)
	return u.client.Send(ctx, "write part", func(ctx context.Context) error {
		p, err := u.client.PutObjectPart(wire.WithContent(ctx, content), u.o.Bucket, u.object, u.id, number, bytes.NewReader(content), int64(len(content)),
			minio.PutObjectPartOptions{Sha256Hex: sum, DisableContentSha256: true})
		if err == nil {
			u.parts = append(u.parts, minio.CompletePart{PartNumber: number, ETag: p.ETag})
		}
		return err
	})
}

// complete makes an object of the parts. After an attempt that got no answer the upload
// may be gone because the object is there.
func (u *upload) complete(ctx context.Context) error {
	doubt := false
	return u.client.Send(ctx, "complete upload", func(ctx context.Context) error {
		_, err := u.client.CompleteMultipartUpload(ctx, u.o.Bucket, u.object, u.id, u.parts, minio.PutObjectOptions{})
		inDoubt(ctx, err)
		switch wire.Classify(err) {
		case wire.Unknown:
			doubt = true
		case wire.Missing:
			if info, found := u.client.StatObject(ctx, u.o.Bucket, u.object, minio.StatObjectOptions{}); doubt && found == nil && info.Size == u.size {
				return nil
			}
		}
		return err
	})
}

// giveUp aborts the upload: now, or, where ctx has ended and its user is not to wait,
// beside what goes on.
func (u *upload) giveUp(ctx context.Context) {
	if u.id == "" {
		return
	}
	abort := func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), u.o.Timeout)
		defer cancel()
		if err := u.abort(ctx, u.object, u.id); err != nil {
			u.o.Count("upload-left", 1)
		}
	}
	if ctx.Err() == nil {
		abort()
		return
	}
	u.tidying.Go(abort)
}

func (s *Store) abort(ctx context.Context, object, id string) error {
	err := s.client.Send(ctx, "abort upload", func(ctx context.Context) error {
		return s.client.AbortMultipartUpload(ctx, s.o.Bucket, object, id)
	})
	if wire.Classify(err) == wire.Missing {
		return nil
	}
	return err
}

// rootOf is the service's answer in an error.
func rootOf(err error) error {
	var e minio.ErrorResponse
	if errors.As(err, &e) {
		return e
	}
	return err
}

// buffers are kept by the bits that their length takes: memory of at most twice what is
// held.
type buffers [64]sync.Pool

// get gives a slice of n bytes, whose content is anything, until release.
func (b *buffers) get(n int) (buffer []byte, release func()) {
	class := bits.Len(uint(max(n, 4096) - 1))
	p, ok := b[class].Get().(*[]byte)
	if !ok {
		s := make([]byte, 1<<class)
		p = &s
	}
	return (*p)[:n], func() { b[class].Put(p) }
}
