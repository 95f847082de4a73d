package coder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"penstock/consumers/executor/coder/catalog"
	"penstock/consumers/executor/coder/object"
)

// recoding is a version that is being coded anew, since its coding is not in force any
// more. Its new blobs lie at new places, and the document names them only when all of
// them have landed: until then, and for readers that hold it, it is what it was, and
// survives what it did.
type recoding struct {
	c       *Coder
	v       *object.Version
	enc     *object.Encoder
	shape   object.Shape // of the new coding
	attempt string
	intent  string // empty: nothing is to be written
	places  []object.Place
	pour    *pour
}

// recode codes a version anew.
func (c *Coder) recode(ctx context.Context, v *object.Version) error {
	read, err := c.memory.await(ctx, wider(v.Coding, c.code), v.Shape.Size, copying)
	if err != nil {
		return err
	}
	write := read.half()
	defer write.give()
	r := &recoding{c: c, v: v, attempt: newID()[:8]}
	if r.enc, err = write.encoder(); err != nil {
		read.give()
		return err
	}
	defer write.keepEncoder(r.enc)
	in, err := c.openVersion(ctx, v, read)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := r.run(ctx, in); err != nil {
		c.abandon(r.intent)
		return err
	}
	return r.conclude(ctx)
}

// wider is the coding of which a segment weighs more.
func wider(a, b object.Coding) object.Coding {
	if a.N*b.K > b.N*a.K {
		return a
	}
	return b
}

// openVersion opens a version that the caller holds, for work that nobody waits for.
func (c *Coder) openVersion(ctx context.Context, v *object.Version, l *lease) (io.ReadCloser, error) {
	if v.Shape.Size == 0 {
		l.give()
		return io.NopCloser(bytes.NewReader(nil)), nil
	}
	g := &reading{
		c: c, lease: l, background: true, left: v.Shape.Size, close: func() {},
		parts: []catalog.Piece{{Version: v.ID, Size: v.Shape.Size}},
	}
	g.ctx, g.cancel = context.WithCancelCause(ctx)
	r := &Reader{body: g}
	if err := g.begin(); err != nil {
		_ = r.Close()
		return nil, err
	}
	return r, nil
}

// run writes the blobs. No store is told of them any more when it has returned.
func (r *recoding) run(ctx context.Context, in io.Reader) error {
	if err := r.enc.Reset(r.v.Key, r.v.ID); err != nil {
		return err
	}
	r.enc.Expect(r.v.Shape.Size)
	for !r.enc.Ended() {
		shape, err := r.enc.Next(in)
		if errors.Is(err, io.EOF) {
			return nil // it is empty
		}
		if err != nil {
			return err
		}
		if r.pour == nil {
			if err := r.begin(ctx, shape); err != nil {
				return err
			}
			defer r.pour.end(errShut)
		}
		err = r.pour.feedAll(ctx, r.enc.Ended(), func(i int) ([]byte, error) { return r.enc.Blob(r.shape, i), nil })
		if err != nil {
			return err
		}
		if live := r.pour.live(); len(live) < len(r.places) {
			return fmt.Errorf("%w: %d blobs of %d in the coding in force", ErrTooFew, len(live), len(r.places))
		}
	}
	return nil
}

// begin opens the intent, once the first segment says how the others go.
func (r *recoding) begin(ctx context.Context, shape object.Shape) error {
	shape.Size = r.v.Shape.Size
	r.shape = shape
	r.places = r.c.placesOf(r.v.ID, r.attempt)[:shape.Blobs()]
	r.intent = r.v.ID + "." + r.attempt
	err := r.c.catalog.Begin(ctx, catalog.Intent{ID: r.intent, Since: r.c.o.Clock.Now(), Places: r.places})
	if err != nil {
		r.intent = ""
		return err
	}
	targets := make([]target, len(r.places))
	for i, p := range r.places {
		targets[i] = target{shape, i, p}
	}
	r.pour = r.c.newPour(targets)
	return nil
}

// conclude makes the new blobs those of the version; the old ones are deleted.
func (r *recoding) conclude(ctx context.Context) error {
	doc, err := r.enc.Finish(object.Info{
		Time: r.v.Time, ETag: r.v.ETag, ContentType: r.v.ContentType, Metadata: r.v.Metadata,
		Cut: r.shape.Cut, Places: r.places,
	})
	if err == nil {
		in := catalog.SettleInput{Version: r.v.ID, Document: doc}
		if r.intent != "" {
			in.Intents = []string{r.intent}
		}
		err = r.c.catalog.Settle(ctx, in)
	}
	switch {
	case errors.Is(err, catalog.ErrNoVersion):
		return nil // it was overwritten or deleted meanwhile, and its blobs go
	case err != nil:
		r.c.abandon(r.intent)
		return err
	}
	r.c.count(EventSettled, "recoded", 1)
	return nil
}
