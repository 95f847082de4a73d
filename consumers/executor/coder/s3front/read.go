package s3front

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/versity/versitygw/s3err"
	"github.com/versity/versitygw/s3response"

	"penstock/consumers/executor/coder"
)

// conditions are those of a request, with a prefix before the names of their fields: on
// the object or on the source of a copy. A date that is none asks for nothing.
func conditions(h http.Header, prefix string) (c coder.Conditions) {
	c.IfMatch = strings.Join(h[http.CanonicalHeaderKey(prefix+"If-Match")], ",")
	c.IfNoneMatch = strings.Join(h[http.CanonicalHeaderKey(prefix+"If-None-Match")], ",")
	c.IfModifiedSince = date(h.Get(prefix + "If-Modified-Since"))
	c.IfUnmodifiedSince = date(h.Get(prefix + "If-Unmodified-Since"))
	return c
}

func date(field string) time.Time {
	if t, err := http.ParseTime(field); err == nil {
		return t
	}
	t, err := time.Parse(time.RFC3339, field)
	if err != nil {
		return time.Time{}
	}
	return t
}

// wanted is what a read asks for.
func wanted(q *request, part *int32) coder.GetInput {
	in := coder.GetInput{Bucket: q.bucket, Key: q.key, Conditions: conditions(q.http.Header, "")}
	if part != nil {
		in.Range.Part = int(*part)
		return in
	}
	in.Range, _ = parseRange(q.http.Header.Get("Range"))
	return in
}

// GetObject implements backend.Backend.
func (b *storage) GetObject(ctx context.Context, in *s3.GetObjectInput) (*s3.GetObjectOutput, error) {
	q := requestOf(ctx)
	want := wanted(q, in.PartNumber)
	r, err := b.coder.Get(living(ctx), want)
	if err != nil {
		return nil, b.refusal(ctx, q, want, err)
	}
	o := &r.Object
	out := &s3.GetObjectOutput{
		AcceptRanges: ref("bytes"), Body: reading{r, b, living(ctx)}, ContentLength: &r.Length, ETag: quoted(o.ETag),
		LastModified: &o.Modified, Metadata: o.Metadata, StorageClass: types.StorageClassStandard,
		CacheControl: some(o.Headers.CacheControl), ContentDisposition: some(o.Headers.ContentDisposition),
		ContentEncoding: some(o.Headers.ContentEncoding), ContentLanguage: some(o.Headers.ContentLanguage),
		ContentType: some(o.Headers.ContentType), ExpiresString: some(o.Headers.Expires),
		ContentRange: contentRange(want.Range, o, r.Offset, r.Length), PartsCount: partsCount(o, want.Range),
	}
	if in.ChecksumMode == types.ChecksumModeEnabled && r.Length == o.Size {
		out.ChecksumType = spread(o.Checksums, &out.ChecksumCRC32, &out.ChecksumCRC32C, &out.ChecksumCRC64NVME, &out.ChecksumSHA1, &out.ChecksumSHA256)
	}
	return out, nil
}

// reading is the body of an answer. An error in the middle has no place in the answer:
// it is logged, and cuts the connection.
type reading struct {
	*coder.Reader

	b   *storage
	ctx context.Context // of the request
}

// Read implements io.Reader.
func (r reading) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = r.b.fault(r.ctx, err, subject{bucket: r.Bucket, key: r.Key})
	}
	return n, err
}

// HeadObject implements backend.Backend.
func (b *storage) HeadObject(ctx context.Context, in *s3.HeadObjectInput) (*s3.HeadObjectOutput, error) {
	q := requestOf(ctx)
	want := wanted(q, in.PartNumber)
	o, err := b.coder.Head(living(ctx), want)
	if err != nil {
		return nil, b.refusal(ctx, q, want, err)
	}
	offset, length, err := want.Range.In(&o)
	if err != nil {
		return nil, b.refusal(ctx, q, want, err)
	}
	out := &s3.HeadObjectOutput{
		AcceptRanges: ref("bytes"), ContentLength: &length, ETag: quoted(o.ETag),
		LastModified: &o.Modified, Metadata: o.Metadata, StorageClass: types.StorageClassStandard,
		CacheControl: some(o.Headers.CacheControl), ContentDisposition: some(o.Headers.ContentDisposition),
		ContentEncoding: some(o.Headers.ContentEncoding), ContentLanguage: some(o.Headers.ContentLanguage),
		ContentType: some(o.Headers.ContentType), ExpiresString: some(o.Headers.Expires),
		ContentRange: contentRange(want.Range, &o, offset, length), PartsCount: partsCount(&o, want.Range),
	}
	if in.ChecksumMode == types.ChecksumModeEnabled && length == o.Size {
		out.ChecksumType = spread(o.Checksums, &out.ChecksumCRC32, &out.ChecksumCRC32C, &out.ChecksumCRC64NVME, &out.ChecksumSHA1, &out.ChecksumSHA256)
	}
	return out, nil
}

// contentRange is the field that tells which bytes of an object an answer has; nil if
// nobody asked for some.
func contentRange(r coder.Range, o *coder.Object, offset, length int64) *string {
	if !r.Set && r.Part == 0 || length == 0 {
		return nil
	}
	return ref(fmt.Sprintf("bytes %d-%d/%d", offset, offset+length-1, o.Size))
}

// partsCount is how many parts an object has, for those who ask for one.
func partsCount(o *coder.Object, r coder.Range) *int32 {
	if r.Part == 0 || len(o.Parts) == 0 {
		return nil
	}
	return ref(int32(min(len(o.Parts), math.MaxInt32))) //nolint:gosec // bounded
}

// refusal is S3's error of a read, with the headers that it has beside it.
func (b *storage) refusal(ctx context.Context, q *request, want coder.GetInput, err error) error {
	s := subject{bucket: q.bucket, key: q.key}
	if !errors.Is(err, coder.ErrBadRange) && !errors.Is(err, coder.ErrPart) && !errors.Is(err, coder.ErrNotModified) {
		return b.fault(ctx, err, s)
	}
	o, unknown := b.coder.Head(living(ctx), coder.GetInput{Bucket: q.bucket, Key: q.key})
	switch {
	case unknown != nil: // It went away meanwhile.
		return b.fault(ctx, unknown, s)
	case errors.Is(err, coder.ErrNotModified):
		q.more.Set("ETag", *quoted(o.ETag))
		q.more.Set("Last-Modified", o.Modified.UTC().Format(http.TimeFormat))
		return b.fault(ctx, err, s)
	case want.Range.Part > 0:
		return s3err.GetInvalidPartNumberRangeErr(int32(min(max(len(o.Parts), 1), math.MaxInt32)), int32(min(want.Range.Part, math.MaxInt32))) //nolint:gosec // bounded
	}
	q.more.Set("Content-Range", "bytes */"+strconv.FormatInt(o.Size, 10))
	return s3err.GetInvalidRangeErr(q.http.Header.Get("Range"), o.Size)
}

// GetObjectAttributes implements backend.Backend.
func (b *storage) GetObjectAttributes(ctx context.Context, in *s3.GetObjectAttributesInput) (out s3response.GetObjectAttributesResponse, err error) {
	q := requestOf(ctx)
	o, err := b.coder.Head(living(ctx), coder.GetInput{Bucket: q.bucket, Key: q.key, Conditions: conditions(q.http.Header, "")})
	if err != nil {
		return out, b.fault(ctx, err, subject{bucket: q.bucket, key: q.key})
	}
	out.ETag, out.ObjectSize, out.LastModified, out.StorageClass = &o.ETag, &o.Size, &o.Modified, types.StorageClassStandard
	if len(o.Checksums) > 0 {
		c := &types.Checksum{}
		c.ChecksumType = spread(o.Checksums, &c.ChecksumCRC32, &c.ChecksumCRC32C, &c.ChecksumCRC64NVME, &c.ChecksumSHA1, &c.ChecksumSHA256)
		out.Checksum = c
	}
	if len(o.Parts) == 0 {
		return out, nil
	}
	after, _ := strconv.Atoi(deref(in.PartNumberMarker)) // none is 0
	most := 1000
	if in.MaxParts != nil {
		most = int(*in.MaxParts)
	}
	out.ObjectParts = attributeParts(o.Parts, after, most)
	return out, nil
}

func attributeParts(all []coder.Piece, after, most int) *s3response.ObjectParts {
	out := &s3response.ObjectParts{PartNumberMarker: after, MaxParts: most}
	for _, p := range all {
		if p.Number <= after {
			continue
		}
		if len(out.Parts) == most {
			out.IsTruncated = true
			break
		}
		out.Parts = append(out.Parts, types.ObjectPart{PartNumber: ref(int32(p.Number)), Size: ref(p.Size)}) //nolint:gosec // at most 10,000
		out.NextPartNumberMarker = p.Number
	}
	return out
}

// spread sets the fields of an answer that hold checksums, and returns their type.
func spread(all []coder.Checksum, crc32, crc32c, crc64nvme, sha1, sha256 **string) (kind types.ChecksumType) {
	for _, c := range all {
		switch kind = typeOf(c); types.ChecksumAlgorithm(c.Algorithm) {
		case types.ChecksumAlgorithmCrc32:
			*crc32 = &c.Value
		case types.ChecksumAlgorithmCrc32c:
			*crc32c = &c.Value
		case types.ChecksumAlgorithmCrc64nvme:
			*crc64nvme = &c.Value
		case types.ChecksumAlgorithmSha1:
			*sha1 = &c.Value
		case types.ChecksumAlgorithmSha256:
			*sha256 = &c.Value
		}
	}
	return kind
}

// typeOf is S3's word for what a checksum is of.
func typeOf(c coder.Checksum) types.ChecksumType {
	if c.Composite {
		return types.ChecksumTypeComposite
	}
	return types.ChecksumTypeFullObject
}

func ref[T any](v T) *T { return &v }

// some is nil for an empty string.
func some(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// deref is empty for nil.
func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func quoted(etag string) *string { return ref(`"` + etag + `"`) }
