package coder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"penstock/consumers/executor/coder/chunks"
)

// body is what a client sends: exactly so many bytes, until ctx ends.
type body struct {
	ctx  context.Context
	r    io.Reader
	want int64
	got  int64
}

// Read implements io.Reader. It returns ErrBody when there are fewer bytes than was
// said, or more.
func (b *body) Read(p []byte) (int, error) {
	if b.ctx.Err() != nil {
		return 0, context.Cause(b.ctx)
	}
	n, err := b.r.Read(p)
	b.got += int64(n)
	switch { // only the plain io.EOF is an end
	case b.got > b.want:
		return 0, fmt.Errorf("%w: more than %d bytes", ErrBody, b.want)
	case errors.Is(err, io.EOF) && err != io.EOF:
		return n, fmt.Errorf("%w: %w", ErrBody, err)
	case err == io.EOF && b.got < b.want:
		return n, fmt.Errorf("%w: %d of %d bytes", ErrBody, b.got, b.want)
	}
	return n, err
}

// spool brings a body of unknown size to disk, since stores want to know it before they
// take a blob. The file has no name, and is gone once closed.
func (c *Coder) spool(ctx context.Context, r io.Reader) (*os.File, int64, error) {
	f, err := os.CreateTemp(c.o.State, "body-*")
	if err != nil {
		return nil, 0, fmt.Errorf("spool: %w", err)
	}
	_ = os.Remove(f.Name()) // else it goes at the next start
	n, err := io.Copy(f, chunks.Bounded(ctx, r))
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		_ = f.Close()
		return nil, 0, fmt.Errorf("spool: %w", err)
	}
	return f, n, nil
}
