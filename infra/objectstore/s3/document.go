package s3

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/minio/minio-go/v7"

	"penstock/infra/objectstore"
	"penstock/infra/objectstore/manifest"
	"penstock/infra/objectstore/s3/wire"
)

const (
	// maxDocument bounds what is read as a document, so that a foreign object in
	// its place can't fill the memory.
	maxDocument = 256 << 20
	// readings is how often a document is read until two readings agree.
	readings = 10
)

// envelope is the first line of a stored document. The rest is manifest's.
type envelope struct {
	Format int    `json:"penstock"`
	Owner  []byte `json:"owner"` // ids are bytes; JSON strings can't hold all of them
	// Nonce is the write's own. It makes every content, and with it every ETag,
	// one of its kind, and tells a writer that got no answer whether the document
	// is its own.
	Nonce string `json:"nonce"`
}

const format = 1

// stored is a document as it was read.
type stored struct {
	envelope
	body []byte
	etag string
}

// seal returns a document with its envelope.
func seal(owner, nonce string, body []byte) ([]byte, error) {
	head, err := json.Marshal(envelope{Format: format, Owner: []byte(owner), Nonce: nonce})
	if err != nil {
		return nil, fmt.Errorf("encode document: %w", err)
	}
	return append(append(head, '\n'), body...), nil
}

func unseal(raw []byte, etag string) (stored, error) {
	head, body, found := bytes.Cut(raw, []byte{'\n'})
	s := stored{body: body, etag: etag}
	if err := json.Unmarshal(head, &s.envelope); err != nil || !found || s.Format != format || s.Nonce == "" {
		return stored{}, fmt.Errorf("%w: not a document of this format", objectstore.ErrCorrupt)
	}
	return s, nil
}

// Get reads an owner's document.
func (b *bucket) Get(ctx context.Context, owner string) (body []byte, revision string, err error) {
	s, err := b.read(ctx, owner)
	if err != nil {
		return nil, "", err
	}
	return s.body, s.etag, nil
}

// read reads an owner's document and makes sure that content and ETag are of one
// version of it, and of this owner.
func (b *bucket) read(ctx context.Context, owner string) (stored, error) {
	s, err := b.readKey(ctx, b.layout.doc(owner))
	if err != nil {
		return stored{}, fmt.Errorf("owner %.80q: %w", owner, err)
	}
	if string(s.Owner) != owner {
		return stored{}, fmt.Errorf("owner %.80q: %w: the document is of %.80q", owner, objectstore.ErrCorrupt, s.Owner)
	}
	return s, nil
}

func (b *bucket) readKey(ctx context.Context, key string) (stored, error) {
	var last []byte
	var lastTag string
	for reading := range readings {
		raw, etag, err := b.readOnce(ctx, key)
		if err != nil {
			return stored{}, err
		}
		sum := md5.Sum(raw)
		whole, usual := etag == hex.EncodeToString(sum[:]), 0
		if !whole {
			whole, usual = reading > 0 && etag == lastTag && bytes.Equal(raw, last), 1
		}
		if whole {
			if reading > usual {
				b.o.Count("torn-read", 1)
			}
			return unseal(raw, etag)
		}
		last, lastTag = raw, etag
	}
	return stored{}, errChanging
}

func (b *bucket) readOnce(ctx context.Context, key string) (raw []byte, etag string, err error) {
	err = b.wire.Send(ctx, "read document", func(ctx context.Context) error {
		r, info, _, err := b.wire.GetObject(ctx, b.o.Bucket, key, minio.GetObjectOptions{})
		if err != nil {
			return err
		}
		etag = info.ETag
		raw, err = io.ReadAll(io.LimitReader(r, maxDocument+1))
		return errors.Join(err, r.Close())
	})
	if wire.Classify(err) == wire.Missing {
		return nil, "", objectstore.ErrNoOwner
	}
	if err == nil && len(raw) > maxDocument {
		err = fmt.Errorf("%w: a document of more than %d bytes", objectstore.ErrCorrupt, maxDocument)
	}
	return raw, etag, err
}

// Set writes an owner's document on condition of its revision.
func (b *bucket) Set(ctx context.Context, owner string, body []byte, revision string) (next string, err error) {
	w := &write{bucket: b, owner: owner, nonce: nonce(), revision: revision}
	if w.content, err = seal(owner, w.nonce, body); err != nil {
		return "", err
	}
	if b.barrier {
		return w.conditional(ctx)
	}
	unlock, err := b.turns.take(ctx, owner)
	if err != nil {
		return "", err
	}
	defer unlock()
	return w.compared(ctx)
}

func nonce() string {
	n := make([]byte, 12)
	_, _ = rand.Read(n) // never fails
	return base64.RawURLEncoding.EncodeToString(n)
}

// write is one writing of a document, however often it is sent.
type write struct {
	*bucket
	owner, nonce, revision string
	content                []byte
	doubt                  bool // an attempt got no clear answer
}

// put sends the document once.
func (w *write) put(ctx context.Context, o minio.PutObjectOptions) (etag string, err error) {
	limited, cancel := context.WithTimeout(ctx, w.o.Timeout)
	defer cancel()
	info, err := w.putBytes(limited, w.layout.doc(w.owner), w.content, o)
	if limited.Err() != nil && ctx.Err() == nil && err != nil {
		err = errSilent // the caller's context has not ended
	}
	return info.ETag, err
}

// conditional sends the document until it is known whether it was written. The
// same again does no harm: its condition is met at most once.
func (w *write) conditional(ctx context.Context) (next string, err error) {
	var o minio.PutObjectOptions
	if w.revision == "" {
		o.SetMatchETagExcept("*")
	} else {
		o.SetMatchETag(w.revision)
	}
	if err := w.wire.Admitted(ctx); err != nil {
		return "", w.failed(err)
	}
	for attempt := 0; ; attempt++ {
		etag, err := w.put(ctx, o)
		a := wire.Classify(err)
		switch {
		case a == wire.Done && etag != "":
			return etag, nil
		case a == wire.Done || a == wire.Conflict || a == wire.Missing:
			again, next, err := w.look(ctx)
			if !again {
				return next, err
			}
		case a == wire.Unknown:
			w.doubt = true
		case a == wire.Refused:
			return "", w.failed(err)
		}
		if ctx.Err() != nil {
			return "", w.failed(ctx.Err())
		}
		if attempt+1 >= w.o.Attempts {
			if err == nil {
				err = errChanging
			}
			return "", w.failed(err)
		}
		if err := w.wire.Rest(ctx, attempt, err); err != nil {
			return "", w.failed(err)
		}
	}
}

// look reads the document after an answer that leaves open whose it is. Even the
// first conflict may be with this very write: there are proxies that send a
// request again by themselves.
func (w *write) look(ctx context.Context) (again bool, next string, err error) {
	s, err := w.read(ctx, w.owner)
	switch {
	case errors.Is(err, objectstore.ErrNoOwner):
		if w.revision == "" {
			return true, "", nil
		}
	case err != nil:
		return false, "", w.failed(err)
	case s.Nonce == w.nonce:
		return false, s.etag, nil
	case s.etag == w.revision:
		return true, "", nil
	}
	if w.doubt {
		return false, "", fmt.Errorf("owner %.80q: %w", w.owner, ErrUnknown)
	}
	return false, "", manifest.ErrConflict
}

// compared is for services that don't compare: the document is read before, by
// one writer of this Store at a time.
func (w *write) compared(ctx context.Context) (next string, err error) {
	for attempt := 0; ; attempt++ {
		if again, next, err := w.look(ctx); !again && (err != nil || next != "") {
			return next, err
		}
		etag, err := w.put(ctx, minio.PutObjectOptions{})
		switch a := wire.Classify(err); {
		case a == wire.Done && etag != "":
			return etag, nil
		case ctx.Err() != nil:
			return "", w.failed(ctx.Err())
		case a == wire.Done:
		case a == wire.Unknown || a == wire.Busy:
			w.doubt = w.doubt || a == wire.Unknown
		default:
			return "", w.failed(err)
		}
		if attempt+1 >= w.o.Attempts {
			return "", w.failed(err)
		}
		if err := w.wire.Rest(ctx, attempt, err); err != nil {
			return "", w.failed(err)
		}
	}
}

func (w *write) failed(err error) error {
	if w.doubt {
		err = errors.Join(ErrUnknown, err)
	}
	return fmt.Errorf("write document of owner %.80q: %w", w.owner, w.wire.Safe(err))
}

// putBytes stores bytes in one request that the service can check.
func (b *bucket) putBytes(ctx context.Context, key string, content []byte, o minio.PutObjectOptions) (minio.UploadInfo, error) {
	return b.putFrom(wire.WithContent(ctx, content), key, bytes.NewReader(content), digests(content), int64(len(content)), o)
}

// putFrom is putBytes of bytes that somebody else hands out.
func (b *bucket) putFrom(ctx context.Context, key string, content io.Reader, s sums, size int64, o minio.PutObjectOptions) (minio.UploadInfo, error) {
	// Without this the client would sign content chunk by chunk although its
	// digest is known, and send an empty one in a way that gateways stumble over.
	o.DisableContentSha256 = true
	return b.wire.PutObject(ctx, b.o.Bucket, key, content, size, s.md5, s.sha256, o)
}

// sums of content, in the spellings of the protocol: with them nothing needs to
// be signed in pieces, and what arrives damaged is refused.
type sums struct{ md5, sha256 string }

func digests(content []byte) sums {
	m, s := md5.Sum(content), sha256.Sum256(content)
	return sums{base64.StdEncoding.EncodeToString(m[:]), hex.EncodeToString(s[:])}
}
