package s3

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"

	"penstock/consumers/executor/coder/chunks"
	"penstock/infra/objectstore/s3/wire"
)

// mark is the end of every object's name.
const mark = "!"

// Store is a bucket, or what lies under a prefix in it.
type Store struct {
	o       Options
	root    string // of all names
	client  *wire.Client
	buffers buffers
	tidying sync.WaitGroup
}

var (
	_ chunks.Tidier = (*Store)(nil)
	_ chunks.Late   = (*Store)(nil)
)

// New makes a store of a bucket. Nothing is sent. ErrOption.
func New(o Options) (*Store, error) {
	w, err := o.complete()
	if err != nil {
		return nil, err
	}
	client, err := wire.New(w)
	if err != nil {
		return nil, fmt.Errorf("store %s: %w: %w", o.Name, ErrOption, err)
	}
	s := &Store{o: o, client: client}
	if o.Prefix != "" {
		s.root = o.Prefix + "/"
	}
	return s, nil
}

// Late implements chunks.Late.
func (s *Store) Late() time.Duration { return s.o.Late }

// Check tells whether the bucket can be reached and is there.
func (s *Store) Check(ctx context.Context) error {
	return s.client.Send(ctx, "look for bucket "+s.o.Bucket, func(ctx context.Context) error {
		there, err := s.client.BucketExists(ctx, s.o.Bucket)
		if err == nil && !there {
			err = minio.ErrorResponse{Code: "NoSuchBucket", Message: "there is no such bucket", StatusCode: 404}
		}
		return err
	})
}

// Close waits for what is being tidied up, at most the timeout, and ends the connections.
// Nothing may be under way.
func (s *Store) Close() error {
	s.tidying.Wait()
	s.client.Close()
	return nil
}

// Name implements chunks.Store.
func (s *Store) Name() string { return s.o.Name }

func (s *Store) object(key string) string { return s.root + key + mark }

// Delete implements chunks.Store.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := chunks.CheckKey(key); err != nil {
		return err
	}
	err := s.client.Send(ctx, "delete "+key, func(ctx context.Context) error {
		return s.client.RemoveObject(ctx, s.o.Bucket, s.object(key), minio.RemoveObjectOptions{})
	})
	if wire.Classify(err) == wire.Missing {
		return nil
	}
	return err
}

// page is the most objects that services list at a time.
const page = 1000

// List implements chunks.Store.
func (s *Store) List(ctx context.Context, prefix, after string, limit int) ([]chunks.Entry, error) {
	if err := chunks.CheckRange(0, int64(limit)); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l := lister{Store: s, prefix: prefix, after: after, limit: limit}
	err := s.client.Send(ctx, "list "+prefix, l.run)
	return l.found, err
}

// lister lists what follows after, in as many requests as it takes.
type lister struct {
	*Store
	prefix, after string
	limit         int
	found         []chunks.Entry
}

// run lists on from where it is. It may be called again after it failed.
func (l *lister) run(ctx context.Context) error {
	if len(l.found) >= l.limit {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx) // what ends the client's own work
	defer cancel()
	o := minio.ListObjectsOptions{Prefix: l.root + l.prefix, Recursive: true, MaxKeys: min(page, l.limit-len(l.found)+1)}
	if l.after != "" {
		// What comes after a key with its mark are the keys that come after it.
		o.StartAfter = l.object(l.after)
	}
	for info := range l.client.ListObjectsIter(ctx, l.o.Bucket, o) {
		if info.Err != nil {
			return info.Err
		}
		key, ours := strings.CutSuffix(strings.TrimPrefix(info.Key, l.root), mark)
		if !ours || key <= l.after || chunks.CheckKey(key) != nil {
			continue
		}
		l.found = append(l.found, chunks.Entry{Key: key, Bytes: info.Size})
		l.after = key
		if len(l.found) >= l.limit {
			return nil
		}
	}
	return ctx.Err()
}

// Tidy aborts uploads that were begun before a time, which somebody who died has left,
// and says how many. A service that doesn't list them has none to show.
func (s *Store) Tidy(ctx context.Context, before time.Time) (int, error) {
	n := 0
	var key, id string
	for {
		var found minio.ListMultipartUploadsResult
		err := s.client.Send(ctx, "list uploads", func(ctx context.Context) (err error) {
			found, err = s.client.ListMultipartUploads(ctx, s.o.Bucket, s.root, key, id, "", page)
			return err
		})
		if err != nil {
			if status := minio.ToErrorResponse(rootOf(err)).StatusCode; status == 501 || status == 405 {
				return n, nil
			}
			return n, err
		}
		for _, u := range found.Uploads {
			if !strings.HasSuffix(u.Key, mark) || !u.Initiated.Before(before) {
				continue
			}
			if err := s.abort(ctx, u.Key, u.UploadID); err != nil {
				return n, err
			}
			n++
		}
		if !found.IsTruncated || found.NextKeyMarker == key && found.NextUploadIDMarker == id {
			return n, nil
		}
		key, id = found.NextKeyMarker, found.NextUploadIDMarker
	}
}
