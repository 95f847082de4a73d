package s3front

import (
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/versity/versitygw/s3api/utils"
	"github.com/versity/versitygw/s3err"
)

// maxKey is the most bytes of a key.
const maxKey = 1024

// target is what a request is about: no bucket for all of them, no key for a bucket.
type target struct{ bucket, key string }

// path is the decoded path that names a target.
func (t target) path() string {
	switch {
	case t.bucket == "":
		return "/"
	case t.key == "":
		return "/" + t.bucket
	}
	return "/" + t.bucket + "/" + t.key
}

// parseTarget reads a request target (RFC 9112 §3.2), whose path is taken as it is: no
// part of it is a folder, so that none is resolved or joined. What S3 can't name is
// refused.
func parseTarget(uri string) (target, error) {
	raw, _, _ := strings.Cut(uri, "?")
	if !strings.HasPrefix(raw, "/") {
		return target{}, s3err.GetAPIError(s3err.ErrInvalidURI)
	}
	path, err := url.PathUnescape(raw[1:])
	if err != nil || !utf8.ValidString(path) {
		return target{}, s3err.GetAPIError(s3err.ErrInvalidURI)
	}
	var t target
	t.bucket, t.key, _ = strings.Cut(path, "/")
	if t == (target{}) && path == "" {
		return t, nil
	}
	return t, t.check()
}

// check returns the error of a name that S3 has not, or nil.
func (t target) check() error {
	if !utils.IsValidBucketName(t.bucket) {
		return s3err.GetBucketErr(s3err.ErrInvalidBucketName, t.bucket)
	}
	if len(t.key) > maxKey {
		return s3err.GetKeyTooLongErr(int64(len(t.key)), maxKey)
	}
	return nil
}

// parseCopySource reads X-Amz-Copy-Source: a bucket and a key, escaped as a query is,
// with or without a slash before it. A version can't be asked for.
func parseCopySource(header string) (target, error) {
	text, err := url.QueryUnescape(strings.TrimPrefix(header, "/"))
	if err != nil || !utf8.ValidString(text) {
		return target{}, s3err.GetInvalidArgumentErr(s3err.InvalidArgCopySourceEncoding, header)
	}
	text, version, versioned := strings.Cut(text, "?versionId=")
	var t target
	t.bucket, t.key, _ = strings.Cut(strings.TrimPrefix(text, "/"), "/")
	switch {
	case versioned && version != "null":
		return target{}, notImplemented("versionId in X-Amz-Copy-Source")
	case t.key == "":
		return target{}, s3err.GetInvalidArgumentErr(s3err.InvalidArgCopySourceObject, header)
	case !utils.IsValidBucketName(t.bucket):
		return target{}, s3err.GetInvalidArgumentErr(s3err.InvalidArgCopySourceBucket, header)
	}
	return t, t.check()
}
