package shipping

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"penstock/consumers/executor/coder/catalog"
	"penstock/consumers/executor/coder/chunks"
)

// fetch reads a whole blob.
func fetch(ctx context.Context, s chunks.Store, key string) ([]byte, error) {
	var b bytes.Buffer
	if _, err := s.Get(ctx, key, 0, maxBlob, &b); err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name(), err)
	}
	return b.Bytes(), nil
}

// patient runs f with a context that ends after a while.
func patient(ctx context.Context, patience time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("no answer in %v", patience))
	defer cancel()
	err := f(ctx)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	return err
}

// answer is what one store said.
type answer[T any] struct {
	store chunks.Store
	value T
	err   error
}

// ask asks all stores side by side and waits for all of them.
func ask[T any](ctx context.Context, stores []chunks.Store, patience time.Duration,
	f func(context.Context, chunks.Store) (T, error),
) []answer[T] {
	list := make([]answer[T], len(stores))
	done := make(chan struct{})
	for i, s := range stores {
		go func() {
			list[i].store = s
			list[i].err = patient(ctx, patience, func(ctx context.Context) (err error) {
				list[i].value, err = f(ctx, s)
				return err
			})
			done <- struct{}{}
		}()
	}
	for range stores {
		<-done
	}
	return list
}

// quorum returns ErrStores, with what the stores said, unless so many answered that fewer
// than need are left: those have seen every blob that was shipped.
func quorum[T any](list []answer[T], need int) error {
	var failed []error
	for _, a := range list {
		if a.err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", a.store.Name(), a.err))
		}
	}
	if len(failed) >= need {
		return fmt.Errorf("%w: %w", ErrStores, errors.Join(failed...))
	}
	return nil
}

// owner reads a store's marker; the zero identity means that there is none.
func owner(ctx context.Context, s chunks.Store, coder string) (catalog.Identity, error) {
	key := ownerKey(coder)
	raw, err := fetch(ctx, s, key)
	if errors.Is(err, chunks.ErrNotFound) {
		return catalog.Identity{}, nil
	}
	if err != nil {
		return catalog.Identity{}, err
	}
	b, err := unseal(s.Name()+":"+key, kindOwner, raw)
	if err == nil && b.id.Coder != coder {
		err = fmt.Errorf("%w: %s:%s: of coder %s", ErrTorn, s.Name(), key, b.id.Coder)
	}
	return b.id, err
}

func putOwner(ctx context.Context, s chunks.Store, id catalog.Identity) error {
	raw := blob{kind: kindOwner, id: id}.seal()
	return s.Put(ctx, ownerKey(id.Coder), bytes.NewReader(raw), int64(len(raw)))
}

// listing is the names of all blobs of the log in a store. Keys that aren't names are
// counted.
func listing(ctx context.Context, s chunks.Store, coder string) (names []name, others int, err error) {
	const page = 1000
	for after := ""; ; {
		list, err := s.List(ctx, logPrefix(coder), after, page)
		if err != nil {
			return nil, 0, err
		}
		for _, e := range list {
			after = e.Key
			if n, ok := parseName(coder, e.Key); ok {
				n.bytes = e.Bytes
				names = append(names, n)
			} else {
				others++
			}
		}
		if len(list) < page {
			return names, others, nil
		}
	}
}

// supersedes tells whether the owner of a marker is another one than id that comes after
// it. Two instances of one term can't tell who was first: each sees the other so.
func supersedes(marker, id catalog.Identity) bool {
	return marker.Term > id.Term || (marker.Term == id.Term && marker.Instance != id.Instance)
}
