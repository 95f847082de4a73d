package s3front

import (
	"context"
	"encoding/base64"
	"math"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/versity/versitygw/s3err"
	"github.com/versity/versitygw/s3response"

	"penstock/consumers/executor/coder"
)

// spelling is how names stand in a listing: as they are or, where a client asks for it,
// escaped. Names that XML can't have are escaped too, and the answer says so.
type spelling struct{ escaped bool }

// spell returns the spelling that a request asks for.
func spell(q *request) (s spelling, err error) {
	switch kind := q.http.URL.Query().Get("encoding-type"); kind {
	case "":
	case "url":
		s.escaped = true
	default:
		return s, s3err.APIError{
			Code: "InvalidArgument", HTTPStatusCode: 400, Description: "Invalid Encoding Method specified in Request",
		}
	}
	return s, nil
}

// fit makes the spelling one that can write names.
func (s *spelling) fit(names ...string) {
	for _, name := range names {
		s.escaped = s.escaped || strings.ContainsFunc(name, unwritable)
	}
}

// unwritable are the characters that XML 1.0 has not.
func unwritable(r rune) bool {
	return r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF
}

func (s *spelling) name(n string) *string {
	if s.escaped {
		n = strings.ReplaceAll(url.QueryEscape(n), "%2F", "/")
	}
	return &n
}

func (s *spelling) kind() types.EncodingType {
	if s.escaped {
		return types.EncodingTypeUrl
	}
	return ""
}

// page is what a listing of either version has.
type page struct {
	spelling

	listing  coder.Listing
	contents []s3response.Object
	prefixes []types.CommonPrefix
}

// list lists the objects of a request.
func (b *storage) list(ctx context.Context, in coder.ListInput, most int32, owned bool) (p page, err error) {
	q := requestOf(ctx)
	if p.spelling, err = spell(q); err != nil {
		return p, err
	}
	in.Bucket = q.bucket
	if in.Max = int(most); in.Max == 0 {
		// The coder has no listing of nothing; whether the bucket is there counts.
		_, err = b.coder.Bucket(living(ctx), q.bucket)
	} else {
		p.listing, err = b.coder.List(living(ctx), in)
	}
	if err != nil {
		return p, b.fault(ctx, err, subject{bucket: q.bucket})
	}
	p.fit(in.Prefix, in.Delimiter, in.After)
	p.fit(p.listing.Prefixes...)
	for i := range p.listing.Objects {
		p.fit(p.listing.Objects[i].Key)
	}
	for i := range p.listing.Objects {
		p.contents = append(p.contents, p.entry(&p.listing.Objects[i], owned))
	}
	for _, prefix := range p.listing.Prefixes {
		p.prefixes = append(p.prefixes, types.CommonPrefix{Prefix: p.name(prefix)})
	}
	return p, nil
}

func (p *page) entry(o *coder.Object, owned bool) s3response.Object {
	e := s3response.Object{
		Key: p.name(o.Key), ETag: quoted(o.ETag), Size: &o.Size, LastModified: &o.Modified,
		StorageClass: types.ObjectStorageClassStandard,
	}
	if owned {
		e.Owner = &types.Owner{ID: ref(owner), DisplayName: ref(owner)}
	}
	for _, c := range o.Checksums {
		e.ChecksumAlgorithm = append(e.ChecksumAlgorithm, types.ChecksumAlgorithm(c.Algorithm))
		e.ChecksumType = typeOf(c)
	}
	return e
}

// optional is a name of the answer that is left out where it is empty.
func (p *page) optional(name string) *string {
	if name == "" {
		return nil
	}
	return p.name(name)
}

// ListObjects implements backend.Backend.
func (b *storage) ListObjects(ctx context.Context, in *s3.ListObjectsInput) (out s3response.ListObjectsResult, err error) {
	marker := deref(in.Marker)
	p, err := b.list(ctx, coder.ListInput{Prefix: deref(in.Prefix), Delimiter: deref(in.Delimiter), After: marker}, *in.MaxKeys, true)
	if err != nil {
		return out, err
	}
	out = s3response.ListObjectsResult{
		Name: in.Bucket, Prefix: p.name(deref(in.Prefix)), Marker: p.name(marker), MaxKeys: in.MaxKeys,
		Delimiter: p.optional(deref(in.Delimiter)), IsTruncated: &p.listing.More,
		Contents: p.contents, CommonPrefixes: p.prefixes, EncodingType: p.kind(),
	}
	if p.listing.More {
		out.NextMarker = p.name(p.listing.Next)
	}
	return out, nil
}

// ListObjectsV2 implements backend.Backend. A token is where the next listing begins; it
// means nothing to clients.
func (b *storage) ListObjectsV2(ctx context.Context, in *s3.ListObjectsV2Input) (out s3response.ListObjectsV2Result, err error) {
	after, token := deref(in.StartAfter), deref(in.ContinuationToken)
	if token != "" {
		text, err := base64.RawURLEncoding.DecodeString(token)
		if err != nil || len(text) > 2*maxKey {
			return out, s3err.APIError{
				Code: "InvalidArgument", HTTPStatusCode: 400, Description: "The continuation token provided is incorrect",
			}
		}
		after = string(text)
	}
	p, err := b.list(ctx, coder.ListInput{Prefix: deref(in.Prefix), Delimiter: deref(in.Delimiter), After: after}, *in.MaxKeys, *in.FetchOwner)
	if err != nil {
		return out, err
	}
	out = s3response.ListObjectsV2Result{
		Name: in.Bucket, Prefix: p.name(deref(in.Prefix)), StartAfter: p.optional(deref(in.StartAfter)), ContinuationToken: some(token),
		MaxKeys: in.MaxKeys, Delimiter: p.optional(deref(in.Delimiter)), IsTruncated: &p.listing.More,
		KeyCount: ref(int32(min(len(p.contents)+len(p.prefixes), math.MaxInt32))), //nolint:gosec // bounded
		Contents: p.contents, CommonPrefixes: p.prefixes, EncodingType: p.kind(),
	}
	if p.listing.More {
		out.NextContinuationToken = ref(base64.RawURLEncoding.EncodeToString([]byte(p.listing.Next)))
	}
	return out, nil
}
