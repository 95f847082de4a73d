package s3front

import (
	"context"
	"encoding/xml"
	"errors"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/versity/versitygw/s3err"
	"github.com/versity/versitygw/s3response"
	"golang.org/x/sync/errgroup"

	"penstock/consumers/executor/coder"
)

// headersOf are the standard headers that an object keeps. aws-chunked is how its body
// was sent, not what it is.
func headersOf(h http.Header) coder.Headers {
	var encodings []string
	for each := range strings.SplitSeq(strings.Join(h["Content-Encoding"], ","), ",") {
		if each = strings.TrimSpace(each); each != "" && !strings.EqualFold(each, "aws-chunked") {
			encodings = append(encodings, each)
		}
	}
	kind := h.Get("Content-Type")
	if kind == "" {
		kind = "binary/octet-stream"
	}
	return coder.Headers{
		CacheControl: h.Get("Cache-Control"), ContentDisposition: h.Get("Content-Disposition"),
		ContentEncoding: strings.Join(encodings, ","), ContentLanguage: h.Get("Content-Language"),
		ContentType: kind, Expires: h.Get("Expires"),
	}
}

// onWrite are the conditions of a write. S3 has one at a time, and of If-None-Match only
// that nothing is there.
func onWrite(h http.Header) (coder.Conditions, error) {
	c := conditions(h, "")
	switch {
	case c.IfNoneMatch != "" && c.IfMatch != "":
		return c, s3err.GetNotImplementedErr("If-Match,If-None-Match", s3err.NmpAdditionalMessageMultipleCondHeaders)
	case c.IfNoneMatch != "" && strings.Trim(c.IfNoneMatch, `" `) != "*":
		return c, s3err.GetNotImplementedErr("If-None-Match", s3err.NmpAdditionalMessageIfNoneMatch)
	}
	return coder.Conditions{IfMatch: c.IfMatch, IfNoneMatch: c.IfNoneMatch}, nil
}

// PutObject implements backend.Backend.
func (b *storage) PutObject(ctx context.Context, in s3response.PutObjectInput) (out s3response.PutObjectOutput, err error) {
	q := requestOf(ctx)
	met, err := onWrite(q.http.Header)
	if err != nil {
		return out, err
	}
	o, err := b.coder.Put(living(ctx), coder.PutInput{
		Bucket: q.bucket, Key: q.key, Body: q.body, Size: q.body.size,
		Headers: headersOf(q.http.Header), Metadata: in.Metadata, Conditions: met,
		Verify: func(o *coder.Object, sums coder.Sums) (err error) {
			o.Checksums, err = q.body.verify(sums)
			return err
		},
	})
	if err != nil {
		return out, b.fault(ctx, err, subject{bucket: q.bucket, key: q.key, size: q.body.size})
	}
	out = s3response.PutObjectOutput{ETag: *quoted(o.ETag)}
	out.ChecksumType = spread(o.Checksums, &out.ChecksumCRC32, &out.ChecksumCRC32C, &out.ChecksumCRC64NVME, &out.ChecksumSHA1, &out.ChecksumSHA256)
	return out, nil
}

// CopyObject implements backend.Backend. A copy onto itself must change something, as
// S3 has it.
func (b *storage) CopyObject(ctx context.Context, in s3response.CopyObjectInput) (out s3response.CopyObjectOutput, err error) {
	q := requestOf(ctx)
	replace := in.MetadataDirective == types.MetadataDirectiveReplace
	if q.source == q.target && !replace {
		return out, s3err.GetAPIError(s3err.ErrInvalidCopyDest)
	}
	met, err := onWrite(q.http.Header)
	if err != nil {
		return out, err
	}
	to := coder.PutInput{Bucket: q.bucket, Key: q.key, Conditions: met}
	if replace {
		to.Headers, to.Metadata = headersOf(q.http.Header), in.Metadata
	}
	if algorithm := string(in.ChecksumAlgorithm); algorithm != "" {
		return out, notImplemented("X-Amz-Checksum-Algorithm of CopyObject")
	}
	o, err := b.coder.Copy(living(ctx), coder.CopyInput{
		FromBucket: q.source.bucket, FromKey: q.source.key, From: conditions(q.http.Header, copySource+"-"),
		To: to, Replace: replace,
	})
	if err != nil {
		return out, b.fault(ctx, ofSource(err), subject{bucket: q.source.bucket, key: q.source.key})
	}
	result := &s3response.CopyObjectResult{ETag: quoted(o.ETag), LastModified: &o.Modified}
	result.ChecksumType = spread(o.Checksums, &result.ChecksumCRC32, &result.ChecksumCRC32C, &result.ChecksumCRC64NVME, &result.ChecksumSHA1, &result.ChecksumSHA256)
	out.CopyObjectResult = result
	return out, nil
}

// ofSource: a copy has no answer 304; a source that was not to match is a condition that
// failed.
func ofSource(err error) error {
	if errors.Is(err, coder.ErrNotModified) {
		return coder.ErrPrecondition
	}
	return err
}

// DeleteObject implements backend.Backend.
func (b *storage) DeleteObject(ctx context.Context, _ *s3.DeleteObjectInput) (*s3.DeleteObjectOutput, error) {
	q := requestOf(ctx)
	met := coder.Conditions{IfMatch: conditions(q.http.Header, "").IfMatch}
	if err := b.coder.Delete(living(ctx), q.bucket, q.key, met); err != nil {
		return nil, b.fault(ctx, err, subject{bucket: q.bucket, key: q.key})
	}
	return &s3.DeleteObjectOutput{}, nil
}

// maxDeletes is the most objects that one request deletes.
const maxDeletes = 1000

// deletesAtOnce is how many of them are deleted at a time.
const deletesAtOnce = 32

// DeleteObjects implements backend.Backend. Each object is deleted or has an error of
// its own.
func (b *storage) DeleteObjects(ctx context.Context, in *s3.DeleteObjectsInput) (out s3response.DeleteResult, err error) {
	q := requestOf(ctx)
	if n := len(in.Delete.Objects); n == 0 || n > maxDeletes {
		return out, s3err.GetAPIError(s3err.ErrMalformedXML)
	}
	if _, err := b.coder.Bucket(living(ctx), q.bucket); err != nil {
		return out, b.fault(ctx, err, subject{bucket: q.bucket})
	}
	errs := make([]error, len(in.Delete.Objects))
	var group errgroup.Group // side by side, they share transactions
	group.SetLimit(deletesAtOnce)
	for i := range errs {
		group.Go(func() error {
			errs[i] = b.deleteOne(ctx, q, &in.Delete.Objects[i])
			return nil
		})
	}
	_ = group.Wait()
	for i, each := range in.Delete.Objects {
		if err := errs[i]; err != nil {
			out.Error = append(out.Error, s3err.ObjectDeleteError(each.Key, each.VersionId, err))
			continue
		}
		out.Deleted = append(out.Deleted, types.DeletedObject{Key: each.Key, VersionId: each.VersionId})
	}
	if quietly(ctx) {
		out.Deleted = nil
	}
	return out, nil
}

func (b *storage) deleteOne(ctx context.Context, q *request, each *types.ObjectIdentifier) error {
	key := deref(each.Key)
	switch version := deref(each.VersionId); {
	case key == "":
		return s3err.GetAPIError(s3err.ErrMalformedXML)
	case version != "" && version != "null":
		return notImplemented("VersionId")
	case each.LastModifiedTime != nil || each.Size != nil:
		return notImplemented("LastModifiedTime and Size of objects to delete")
	}
	if err := (target{q.bucket, key}).check(); err != nil {
		return err
	}
	err := b.coder.Delete(living(ctx), q.bucket, key, coder.Conditions{IfMatch: deref(each.ETag)})
	return b.fault(ctx, err, subject{bucket: q.bucket, key: key})
}

// quietly tells whether a client wants to be told failures only.
func quietly(ctx context.Context) bool {
	c, ok := ctx.(interface{ PostBody() []byte })
	if !ok {
		return false
	}
	var body struct{ Quiet bool }
	return xml.Unmarshal(c.PostBody(), &body) == nil && body.Quiet
}
