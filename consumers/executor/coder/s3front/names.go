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

// decoded is the path of a request target, unescaped once. It is what is signed.
func decoded(uri string) (string, error) {
	raw, _, _ := strings.Cut(uri, "?")
	path, err := url.PathUnescape(raw)
	if err != nil || !strings.HasPrefix(raw, "/") || !utf8.ValidString(path) {
		return "", s3err.GetAPIError(s3err.ErrInvalidURI)
	}
	return path, nil
}

// parseTarget reads a request target (RFC 9112 §3.2), whose path is taken as it is: no
// part of it is a folder, so that none is resolved or joined. What S3 can't name is
// refused.
func parseTarget(uri string) (t target, path string, err error) {
	if path, err = decoded(uri); err != nil || path == "/" {
		return t, path, err
	}
	t.bucket, t.key, _ = strings.Cut(path[1:], "/")
	return t, path, t.check()
}

// check returns the error of a name that S3 has not, or nil.
func (t target) check() error {
	if !utils.IsValidBucketName(t.bucket) {
		return s3err.GetBucketErr(s3err.ErrInvalidBucketName, t.bucket)
	}
	if len(t.key) > maxKey {
		return s3err.GetKeyTooLongErr(int64(len(t.key)), maxKey)
	}
	if strings.ContainsRune(t.key, 0) {
		// The catalog sets names apart by it.
		return s3err.GetAPIError(s3err.ErrInvalidURI)
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
