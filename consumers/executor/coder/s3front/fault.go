package s3front

import (
	"context"
	"errors"
	"net/http"

	"github.com/versity/versitygw/s3err"

	"penstock/consumers/executor/coder"
)

// subject is what an error is about.
type subject struct {
	bucket, key, upload string
	size                int64
}

// answers are S3's errors for the coder's, in the order in which they are looked for.
var answers = []struct {
	of error
	is func(subject) error
}{
	{coder.ErrNoBucket, func(s subject) error { return s3err.GetBucketErr(s3err.ErrNoSuchBucket, s.bucket) }},
	{coder.ErrBucketExists, func(s subject) error { return s3err.GetBucketErr(s3err.ErrBucketAlreadyOwnedByYou, s.bucket) }},
	{coder.ErrBucketNotEmpty, func(s subject) error { return s3err.GetBucketErr(s3err.ErrBucketNotEmpty, s.bucket) }},
	{coder.ErrNoKey, func(subject) error { return s3err.GetAPIError(s3err.ErrNoSuchKey) }},
	{coder.ErrNoUpload, func(s subject) error { return s3err.GetNoSuchUploadErr(s.upload) }},
	{coder.ErrPartTooSmall, func(s subject) error { return s3err.GetEntityTooSmallErr(s.size, coder.MinPart) }},
	{coder.ErrPartOrder, func(subject) error { return s3err.GetAPIError(s3err.ErrInvalidPartOrder) }},
	{coder.ErrPart, func(subject) error { return s3err.GetAPIError(s3err.ErrInvalidPart) }},
	{coder.ErrPrecondition, func(subject) error { return s3err.GetAPIError(s3err.ErrPreconditionFailed) }},
	{coder.ErrNotModified, func(subject) error { return s3err.GetAPIError(s3err.ErrNotModified) }},
	{coder.ErrBadRange, func(s subject) error { return s3err.GetInvalidRangeErr("", s.size) }},
	{coder.ErrBody, func(subject) error { return s3err.GetAPIError(s3err.ErrIncompleteBody) }},
	{coder.ErrTooLarge, func(s subject) error { return s3err.GetEntityTooLargeErr(s.size, maxObject) }},
	{coder.ErrHeaders, func(s subject) error { return s3err.GetMetadataTooLargeErr(int(s.size), maxMetadata) }},
	{coder.ErrKey, func(s subject) error {
		if err := (target{s.bucket, s.key}).check(); err != nil {
			return err
		}
		return s3err.GetAPIError(s3err.ErrInvalidURI)
	}},
	{coder.ErrBusy, func(subject) error { return s3err.GetAPIError(s3err.ErrSlowDown) }},
	{coder.ErrTooFew, func(subject) error {
		return unavailable("Too few chunks of the object, or too few stores, can be reached. Please try again.")
	}},
	{coder.ErrClosed, func(subject) error { return unavailable("The server is ending. Please try again.") }},
}

// maxMetadata is the most bytes of metadata, names and values.
const maxMetadata = 2 << 10

func unavailable(why string) error {
	return s3err.APIError{Code: "ServiceUnavailable", HTTPStatusCode: http.StatusServiceUnavailable, Description: why}
}

// fault is S3's error for one of the coder's. One that has none is logged and becomes
// InternalError, for it tells clients nothing.
func (b *storage) fault(ctx context.Context, err error, s subject) error {
	if err == nil {
		return nil
	}
	// What reading a body or verifying it said is S3's already.
	var already s3err.S3Error
	if errors.As(err, &already) {
		return already
	}
	if errors.Is(err, context.Canceled) && living(ctx).Err() != nil {
		// Nobody reads it: the client has gone, or the server ends. It says nothing of
		// objects and stores either.
		b.log.Debug().Err(err).Str("bucket", s.bucket).Str("key", s.key).Msg("a client of S3 has gone")
		return unavailable("The request was cancelled.")
	}
	for _, a := range answers {
		if errors.Is(err, a.of) {
			if errors.Is(err, coder.ErrTooFew) {
				b.log.Warn().Err(err).Str("bucket", s.bucket).Str("key", s.key).Msg("an object can't be served")
			}
			return a.is(s)
		}
	}
	b.log.Error().Err(err).Str("bucket", s.bucket).Str("key", s.key).Msg("a request of S3 failed")
	return s3err.GetAPIError(s3err.ErrInternalError)
}
