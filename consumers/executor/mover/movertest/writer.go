package movertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"penstock/infra/objectstore"
)

// Writer is a client of one site's store. Run calls Write by one goroutine at a
// time.
type Writer interface {
	// Write makes the number n the last of what the owner has. The numbers ascend;
	// one whose write was refused or failed is written again, here or elsewhere.
	// When it returns nil the write is acknowledged. A *MovedError says that this
	// site may not be written to and nothing was.
	Write(ctx context.Context, owner string, n uint64) error
	// Read returns the owner's numbers in their order.
	Read(ctx context.Context, owner string) ([]uint64, error)
}

// MovedError says that the owner's data isn't here.
type MovedError struct {
	// Site is where it went; empty if it is about to arrive here.
	Site string
}

// Error names the site.
func (e *MovedError) Error() string {
	if e.Site == "" {
		return "the owner's data is about to arrive"
	}
	return "the owner's data went to " + e.Site
}

// Moved turns the error of a store's write into a *MovedError if it says that the
// copy may not be written to.
func Moved(err error) error {
	var marked *objectstore.MarkedError
	if !errors.As(err, &marked) {
		return err
	}
	if marked.Have.State == objectstore.Retired {
		return &MovedError{Site: marked.Have.Site}
	}
	return &MovedError{}
}

// Objects returns a client of any store. It appends to an object by reading it
// and putting it back, and begins another now and then.
func Objects(_ string, s objectstore.Store) Writer { return objects{s} }

type objects struct{ s objectstore.Store }

// perObject is how many numbers are in one object.
const perObject = 100

func objectOf(n uint64) string { return fmt.Sprintf("log/%06d", n/perObject) }

func (o objects) Write(ctx context.Context, owner string, n uint64) error {
	// A copy that may not be written to may be a part of one: look before.
	m, err := o.s.Stat(ctx, owner)
	if err != nil {
		return err
	}
	if m.State != objectstore.Absent && !m.Writable() {
		return Moved(&objectstore.MarkedError{Owner: owner, Have: m})
	}
	have, err := o.read(ctx, owner, objectOf(n))
	if err != nil && !errors.Is(err, objectstore.ErrNoObject) && !errors.Is(err, objectstore.ErrNoOwner) {
		return err
	}
	// A number that is there was written by a try of before.
	if _, last, _ := cutLast(have); last != n {
		have += strconv.FormatUint(n, 10) + "\n"
	}
	_, err = o.s.Put(ctx, owner, objectOf(n), strings.NewReader(have), objectstore.Mark{})
	return Moved(err)
}

// cutLast returns the last number of an object's lines.
func cutLast(lines string) (rest string, last uint64, ok bool) {
	lines = strings.TrimSuffix(lines, "\n")
	i := strings.LastIndexByte(lines, '\n')
	last, err := strconv.ParseUint(lines[i+1:], 10, 64)
	return lines[:i+1], last, err == nil
}

func (o objects) read(ctx context.Context, owner, name string) (string, error) {
	r, err := o.s.Open(ctx, owner, name)
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(r)
	return string(b), errors.Join(err, r.Close())
}

func (o objects) Read(ctx context.Context, owner string) ([]uint64, error) {
	l, err := o.s.List(ctx, owner)
	if err != nil {
		return nil, err
	}
	var out []uint64
	for _, object := range l.Objects {
		lines, err := o.read(ctx, owner, object.Name)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(lines) {
			n, err := strconv.ParseUint(strings.TrimSuffix(line, "\n"), 10, 64)
			if err != nil {
				return nil, fmt.Errorf("object %s: %w", object.Name, err)
			}
			out = append(out, n)
		}
	}
	return out, nil
}
