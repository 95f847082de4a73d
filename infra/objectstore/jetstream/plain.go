package jetstream

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"penstock/schemas/subject"
)

// The id of a plain object is "=SIZE=NUID=NAME": its chunks are named by the
// NUID, so that a later object of that name is not taken for it.
const plainMark = "="

func plainID(info *jetstream.ObjectInfo) string {
	return plainMark + strconv.FormatUint(info.Size, 10) + plainMark + info.NUID + plainMark + info.Name
}

func parsePlain(id string) (nuid, name string, size int64, ok bool) {
	rest, ok := strings.CutPrefix(id, plainMark)
	if !ok {
		return "", "", 0, false
	}
	length, rest, _ := strings.Cut(rest, plainMark)
	size, err := strconv.ParseInt(length, 10, 64)
	nuid, name, ok = strings.Cut(rest, plainMark)
	return nuid, name, size, ok && err == nil
}

// names calls fn for the names in the object bucket's own directory that are an
// owner's: deleted ones too, which the directory keeps.
func (b *backend) names(ctx context.Context, fn func(owner, name, full string) error) error {
	prefix := "$O." + b.bucket + ".M."
	subjects, err := b.subjects(ctx, prefix+"*")
	if err != nil {
		return fmt.Errorf("list objects: %w", err)
	}
	for s := range subjects {
		full, err := base64.URLEncoding.DecodeString(s[len(prefix):])
		if err != nil {
			continue // foreign
		}
		token, name, ok := strings.Cut(string(full), "/")
		owner, err := subject.Decode(token)
		if !ok || err != nil {
			continue // foreign
		}
		if err := fn(owner, name, string(full)); err != nil {
			return err
		}
	}
	return nil
}

// Plain lists an owner's objects in the bucket's own directory. Links are
// foreign.
func (b *backend) Plain(ctx context.Context, owner string, fn func(name, id string, size int64, version string) error) error {
	return b.names(ctx, func(o, name, full string) error {
		if o != owner {
			return nil
		}
		info, err := b.objects.GetInfo(ctx, full)
		if errors.Is(err, jetstream.ErrObjectNotFound) {
			return nil // deleted
		}
		if err != nil {
			return fmt.Errorf("look at object %.80q: %w", full, err)
		}
		if info.Opts != nil && info.Opts.Link != nil {
			return nil
		}
		return fn(name, plainID(info), int64(info.Size), info.NUID)
	})
}

// deletePlain deletes an object from the directory, unless somebody put another
// one there since.
func (b *backend) deletePlain(ctx context.Context, nuid, name string) error {
	info, err := b.objects.GetInfo(ctx, name)
	switch {
	case errors.Is(err, jetstream.ErrObjectNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("look at object %.80q: %w", name, err)
	case info.NUID != nuid:
		return nil
	}
	if err := b.objects.Delete(ctx, name); err != nil && !errors.Is(err, jetstream.ErrObjectNotFound) {
		return fmt.Errorf("delete object %.80q: %w", name, err)
	}
	return nil
}
