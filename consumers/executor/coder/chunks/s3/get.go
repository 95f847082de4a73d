package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"

	"github.com/minio/minio-go/v7"

	"penstock/consumers/executor/coder/chunks"
	"penstock/infra/objectstore/s3/wire"
)

// Get implements chunks.Store.
func (s *Store) Get(ctx context.Context, key string, off, n int64, w io.Writer) (int64, error) {
	if err := chunks.CheckKey(key); err != nil {
		return 0, err
	}
	if err := chunks.CheckRange(off, n); err != nil {
		return 0, err
	}
	g := getting{Store: s, object: s.object(key), off: off, n: n, w: w}
	request := g.run
	if n == 0 {
		request = g.look
	}
	err := s.client.Send(ctx, "get "+key, request)
	switch {
	case g.writing != nil:
		err = fmt.Errorf("get %s: %w", key, g.writing)
	case wire.Classify(err) == wire.Missing:
		err = fmt.Errorf("get %s: %w", key, chunks.ErrNotFound)
	}
	return g.done, err
}

// getting is one Get, in as many requests as it takes.
type getting struct {
	*Store
	object       string
	off, n, done int64
	w            io.Writer
	etag         string // of what was read so far
	writing      error  // w's
}

// look tells whether the object is there.
func (g *getting) look(ctx context.Context) error {
	_, err := g.client.StatObject(ctx, g.o.Bucket, g.object, minio.StatObjectOptions{})
	return err
}

// run reads on from where it is. It may be called again after it failed.
func (g *getting) run(ctx context.Context) error {
	o, ranged, err := g.rest()
	if err != nil {
		return err
	}
	body, info, header, err := g.client.GetObject(ctx, g.o.Bucket, g.object, o)
	if status := minio.ToErrorResponse(err).StatusCode; err != nil && status == http.StatusRequestedRangeNotSatisfiable {
		return nil // it ends before
	}
	if err != nil {
		return err
	}
	defer body.Close()
	if ranged && header.Get("Content-Range") == "" && g.off+g.done > 0 {
		g.writing = errRange // once more would be the same
		return nil
	}
	g.etag = info.ETag
	_, err = io.Copy(g, io.LimitReader(body, g.n-g.done))
	if g.writing != nil {
		return nil // no request can mend it
	}
	if err != nil && g.done > 0 {
		g.o.Count("resumed", 1)
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// rest asks for what is still to come. That of another object isn't.
func (g *getting) rest() (o minio.GetObjectOptions, ranged bool, err error) {
	from, n := g.off+g.done, g.n-g.done
	switch {
	case n <= math.MaxInt64-from:
		ranged, err = true, o.SetRange(from, from+n-1)
	case from > 0:
		ranged, err = true, o.SetRange(from, 0) // to the end
	}
	if err == nil && g.etag != "" {
		err = o.SetMatchETag(g.etag)
	}
	return o, ranged, err
}

// Write hands on what was read, and tells the writer's failure from the reader's.
func (g *getting) Write(b []byte) (int, error) {
	n, err := g.w.Write(b)
	g.done += int64(n)
	g.writing = err
	return n, err
}
