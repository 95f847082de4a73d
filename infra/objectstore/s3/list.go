package s3

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"

	"penstock/infra/objectstore"
	"penstock/infra/objectstore/s3/wire"
)

// list calls fn for every key below a prefix, or with folders for what stands
// between it and the next slash. A listing that fails goes on after the last key.
func (b *bucket) list(ctx context.Context, prefix string, folders bool, fn func(minio.ObjectInfo) error) error {
	if err := b.wire.Admitted(ctx); err != nil {
		return fmt.Errorf("list: %w", err)
	}
	after := ""
	for attempt := 0; ; attempt++ {
		before := after
		failed, err := b.listAfter(ctx, prefix, folders, &after, fn)
		if failed == nil {
			return err
		}
		if after != before {
			attempt = 0
		}
		a := wire.Classify(failed)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("list: %w", ctx.Err())
		case a != wire.Busy && a != wire.Unknown, attempt+1 >= b.o.Attempts:
			return fmt.Errorf("list: %w", b.wire.Safe(failed))
		}
		if err := b.wire.Rest(ctx, attempt, failed); err != nil {
			return fmt.Errorf("list: %w", err)
		}
	}
}

// listAfter lists until the service fails or fn does.
func (b *bucket) listAfter(ctx context.Context, prefix string, folders bool, after *string, fn func(minio.ObjectInfo) error) (failed, err error) {
	ctx, cancel := context.WithCancel(ctx) // what ends the client's own work
	defer cancel()
	resumed := *after
	o := minio.ListObjectsOptions{Prefix: prefix, Recursive: !folders, StartAfter: resumed}
	for info := range b.wire.ListObjectsIter(ctx, b.o.Bucket, o) {
		if info.Err != nil {
			return info.Err, nil
		}
		if info.Key == resumed && resumed != "" {
			continue // a folder is after itself, since what lies in it is
		}
		if err := fn(info); err != nil {
			return nil, err
		}
		*after = info.Key
	}
	return ctx.Err(), nil
}

// Owners lists the documents, then the folders of plain objects of owners that
// have none. It remembers 16 bytes of every owner with a document.
func (b *bucket) Owners(ctx context.Context, fn func(owner string) error) error {
	type id [16]byte
	short := func(owner string) id {
		sum := sha256.Sum256([]byte(owner))
		return id(sum[:16])
	}
	seen := map[id]struct{}{}
	docs := b.layout.docs()
	err := b.list(ctx, docs, false, func(info minio.ObjectInfo) error {
		owner, err := b.ownerOf(ctx, info.Key[len(docs):])
		if err != nil || owner == "" {
			return err
		}
		seen[short(owner)] = struct{}{}
		return fn(owner)
	})
	if err != nil {
		return err
	}
	root := string(b.layout)
	return b.list(ctx, root, true, func(info minio.ObjectInfo) error {
		folder, found := strings.CutSuffix(info.Key[len(root):], "/")
		if !found {
			return nil // an object beside the owners is nobody's
		}
		owner, found := plainOwner(folder)
		if !found {
			return nil
		}
		if _, has := seen[short(owner)]; has {
			return nil
		}
		has, err := b.hasPlain(ctx, owner)
		if err != nil || !has {
			return err
		}
		return fn(owner)
	})
}

// ownerOf tells whose document a key is; "" for a foreign object.
func (b *bucket) ownerOf(ctx context.Context, element string) (string, error) {
	owner, foreign, ok := name(element)
	if ok || foreign {
		return owner, nil
	}
	s, err := b.readKey(ctx, b.layout.docs()+element)
	if errors.Is(err, objectstore.ErrNoOwner) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("document %s: %w", element, err)
	}
	return string(s.Owner), nil
}

// errEnough ends a listing early.
var errEnough = errors.New("enough")

func (b *bucket) hasPlain(ctx context.Context, owner string) (bool, error) {
	err := b.Plain(ctx, owner, func(string, string, int64, string) error { return errEnough })
	if errors.Is(err, errEnough) {
		return true, nil
	}
	return false, err
}

// Plain lists what was there of an owner before Penstock.
func (b *bucket) Plain(ctx context.Context, owner string, fn func(name, id string, size int64, version string) error) error {
	prefix := b.layout.plain(owner)
	if len(prefix) >= maxKey {
		return nil // no key fits
	}
	return b.list(ctx, prefix, false, func(info minio.ObjectInfo) error {
		name := info.Key[len(prefix):]
		if !nameable(name) {
			return nil
		}
		version := info.ETag
		if version == "" {
			// Files that were put beside a gateway have none.
			version = fmt.Sprintf("%x.%x", info.Size, info.LastModified.UnixNano())
		}
		return fn(name, plainID(name, info.ETag), info.Size, version)
	})
}

// Blobs lists an owner's objects, and uploads that were never completed.
func (b *bucket) Blobs(ctx context.Context, owner string, fn func(id string, modified time.Time) error) error {
	prefix := b.layout.blobs(owner)
	err := b.list(ctx, prefix, false, func(info minio.ObjectInfo) error {
		id, _, ok := name(info.Key[len(prefix):])
		if !ok {
			return nil
		}
		return fn(id, info.LastModified)
	})
	if err != nil {
		return err
	}
	return b.uploads(ctx, prefix, func(u uploaded) error {
		rest, below := strings.CutPrefix(u.key, prefix)
		id, _, ok := name(rest)
		if !below || !ok {
			return nil
		}
		b.partial.add(u.key, u.id)
		return fn(id, u.begun)
	})
}

// uploaded is an upload in parts that isn't completed.
type uploaded struct {
	key, id string
	begun   time.Time
}

// uploads calls fn for the uploads under way below a prefix. A service that
// doesn't list them has none to show.
func (b *bucket) uploads(ctx context.Context, prefix string, fn func(uploaded) error) error {
	var key, id string
	for {
		var page minio.ListMultipartUploadsResult
		err := b.wire.Send(ctx, "list uploads", func(ctx context.Context) (err error) {
			page, err = b.wire.ListMultipartUploads(ctx, b.o.Bucket, prefix, key, id, "", 1000)
			return err
		})
		var e minio.ErrorResponse
		if errors.As(err, &e) && (e.StatusCode == http.StatusNotImplemented || e.StatusCode == http.StatusMethodNotAllowed) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, u := range page.Uploads {
			if err := fn(uploaded{u.Key, u.UploadID, u.Initiated}); err != nil {
				return err
			}
		}
		if !page.IsTruncated || page.NextKeyMarker == key && page.NextUploadIDMarker == id {
			return nil
		}
		key, id = page.NextKeyMarker, page.NextUploadIDMarker
	}
}
