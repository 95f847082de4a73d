package s3front

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/rs/zerolog"
	"github.com/versity/versitygw/backend"
	"github.com/versity/versitygw/s3err"
	"github.com/versity/versitygw/s3response"

	"penstock/consumers/executor/coder"
)

// storage answers versitygw's controllers with the buckets and objects of a coder. What
// it has no method for is NotImplemented. It has no state.
type storage struct {
	backend.BackendUnsupported

	coder *coder.Coder
	log   *zerolog.Logger
}

var _ backend.Backend = (*storage)(nil)

// String implements backend.Backend.
func (*storage) String() string { return owner }

// living returns the context of the client's request: versitygw's own never ends.
func living(ctx context.Context) context.Context {
	if q := requestOf(ctx); q != nil {
		return q.http.Context()
	}
	return ctx
}

// GetObjectLockConfiguration implements backend.Backend: versitygw asks it before it
// writes. No bucket has one; clients are told NotImplemented before it is asked.
func (*storage) GetObjectLockConfiguration(context.Context, string) ([]byte, error) {
	return nil, s3err.GetAPIError(s3err.ErrObjectLockConfigurationNotFound)
}

// ListBuckets implements backend.Backend.
func (b *storage) ListBuckets(ctx context.Context, in s3response.ListBucketsInput) (s3response.ListAllMyBucketsResult, error) {
	out := s3response.ListAllMyBucketsResult{Owner: s3response.CanonicalUser{ID: owner, DisplayName: owner}, Prefix: in.Prefix}
	all, err := b.coder.Buckets(living(ctx))
	if err != nil {
		return out, b.fault(ctx, err, subject{})
	}
	for _, each := range all {
		if each.Name <= in.ContinuationToken || !strings.HasPrefix(each.Name, in.Prefix) {
			continue
		}
		list := &out.Buckets.Bucket
		if in.MaxBuckets > 0 && len(*list) == int(in.MaxBuckets) {
			out.ContinuationToken = (*list)[len(*list)-1].Name
			break
		}
		*list = append(*list, s3response.ListAllMyBucketsEntry{Name: each.Name, CreationDate: each.Created})
	}
	return out, nil
}

// HeadBucket implements backend.Backend.
func (b *storage) HeadBucket(ctx context.Context, in *s3.HeadBucketInput) (*s3.HeadBucketOutput, error) {
	if _, err := b.coder.Bucket(living(ctx), *in.Bucket); err != nil {
		return nil, b.fault(ctx, err, subject{bucket: *in.Bucket})
	}
	return &s3.HeadBucketOutput{}, nil
}

// CreateBucket implements backend.Backend. Its ACL is what every bucket has.
func (b *storage) CreateBucket(ctx context.Context, in *s3.CreateBucketInput, _ []byte) error {
	if c := in.CreateBucketConfiguration; c != nil && len(c.Tags) > 0 {
		return notImplemented("Tags of CreateBucketConfiguration")
	}
	return b.fault(ctx, b.coder.CreateBucket(living(ctx), *in.Bucket), subject{bucket: *in.Bucket})
}

// DeleteBucket implements backend.Backend.
func (b *storage) DeleteBucket(ctx context.Context, name string) error {
	return b.fault(ctx, b.coder.DeleteBucket(living(ctx), name), subject{bucket: name})
}
