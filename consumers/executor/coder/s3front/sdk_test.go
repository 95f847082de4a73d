package s3front

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// noise is bytes that a seed makes.
func noise(n int, seed uint64) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(seed, 1))
	for i := 0; i+8 <= n; i += 8 {
		v := r.Uint64()
		for j := range 8 {
			b[i+j] = byte(v >> (8 * j))
		}
	}
	return b
}

// failed checks S3's code and the status of an error.
func failed(t *testing.T, err error, code string, status int) {
	t.Helper()
	var api smithy.APIError
	var response *smithyhttp.ResponseError
	if !errors.As(err, &api) || !errors.As(err, &response) {
		t.Errorf("%v, expected %s", err, code)
		return
	}
	if api.ErrorCode() != code || response.HTTPStatusCode() != status {
		t.Errorf("%s, %d: %v; expected %s, %d", api.ErrorCode(), response.HTTPStatusCode(), err, code, status)
	}
}

// TestSDK puts, gets, lists, copies and deletes with AWS's own client.
func TestSDK(t *testing.T) {
	t.Parallel()
	w := serve(t, memory(t, nil), nil)
	c, ctx := w.sdk(nil), context.Background()
	b := w.bucket("a-bucket")
	for _, size := range []int{0, 1, 4095, 64 << 10, 3<<20 + 17, 9 << 20} {
		key, data := fmt.Sprintf("size/%d", size), noise(size, uint64(size))
		put, err := c.PutObject(ctx, &s3.PutObjectInput{
			Bucket: &b, Key: &key, Body: bytes.NewReader(data), ContentType: aws.String("text/x"),
			CacheControl: aws.String("no-store"), Metadata: map[string]string{"one": "1", "Two": "zwei"},
		})
		if err != nil {
			t.Fatalf("put %d: %v", size, err)
		}
		sum := md5.Sum(data)
		etag := `"` + hex.EncodeToString(sum[:]) + `"`
		if aws.ToString(put.ETag) != etag || put.ChecksumCRC32 == nil {
			t.Errorf("put %d: %s, %v", size, aws.ToString(put.ETag), put.ChecksumCRC32)
		}
		got, err := c.GetObject(ctx, &s3.GetObjectInput{Bucket: &b, Key: &key})
		if err != nil {
			t.Fatalf("get %d: %v", size, err)
		}
		if !bytes.Equal(drain(t, got.Body), data) || aws.ToString(got.ETag) != etag || aws.ToString(got.ContentType) != "text/x" ||
			got.Metadata["one"] != "1" || got.Metadata["two"] != "zwei" || aws.ToString(got.CacheControl) != "no-store" || got.ChecksumCRC32 == nil {
			t.Errorf("get %d: %+v", size, got)
		}
		head, err := c.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &b, Key: &key})
		if err != nil || aws.ToInt64(head.ContentLength) != int64(size) || aws.ToString(head.ETag) != etag {
			t.Errorf("head %d: %+v, %v", size, head, err)
		}
	}
	list, err := c.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &b, Prefix: aws.String("size/")})
	if err != nil || len(list.Contents) != 6 || aws.ToInt32(list.KeyCount) != 6 {
		t.Errorf("list: %+v, %v", list, err)
	}
	if _, err := c.CopyObject(ctx, &s3.CopyObjectInput{Bucket: &b, Key: aws.String("copy"), CopySource: aws.String(b + "/size/4095")}); err != nil {
		t.Error(err)
	}
	got, err := c.GetObject(ctx, &s3.GetObjectInput{Bucket: &b, Key: aws.String("copy")})
	if err != nil || !bytes.Equal(drain(t, got.Body), noise(4095, 4095)) || got.Metadata["one"] != "1" {
		t.Errorf("copy: %v", err)
	}
	_, err = c.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: &b})
	failed(t, err, "BucketNotEmpty", http.StatusConflict)
	var ids []types.ObjectIdentifier
	for _, o := range list.Contents {
		ids = append(ids, types.ObjectIdentifier{Key: o.Key})
	}
	ids = append(ids, types.ObjectIdentifier{Key: aws.String("never was")})
	deleted, err := c.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: &b, Delete: &types.Delete{Objects: ids}})
	if err != nil || len(deleted.Deleted) != 7 || len(deleted.Errors) > 0 {
		t.Errorf("delete: %+v, %v", deleted, err)
	}
	if _, err := c.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &b, Key: aws.String("copy")}); err != nil {
		t.Error(err)
	}
	if _, err = c.GetObject(ctx, &s3.GetObjectInput{Bucket: &b, Key: aws.String("copy")}); err == nil {
		t.Error("a deleted object")
	}
	failed(t, err, "NoSuchKey", http.StatusNotFound)
	if _, err := c.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: &b}); err != nil {
		t.Error(err)
	}
	_, err = c.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &b})
	failed(t, err, "NoSuchBucket", http.StatusNotFound)
	for _, r := range w.await(25) {
		if r.Access != access || r.Took < 0 || r.Operation == "" {
			t.Errorf("observed %+v", r)
		}
	}
}

// TestConditionsAndRanges: what RFC 9110 and S3 say of them.
func TestConditionsAndRanges(t *testing.T) {
	t.Parallel()
	w := serve(t, memory(t, nil), nil)
	c, ctx := w.sdk(nil), context.Background()
	b, k := w.bucket("a-bucket"), "key"
	data := noise(1000, 7)
	put, err := c.PutObject(ctx, &s3.PutObjectInput{Bucket: &b, Key: &k, Body: bytes.NewReader(data), IfNoneMatch: aws.String("*")})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.PutObject(ctx, &s3.PutObjectInput{Bucket: &b, Key: &k, Body: bytes.NewReader(data), IfNoneMatch: aws.String("*")})
	failed(t, err, "PreconditionFailed", http.StatusPreconditionFailed)
	_, err = c.PutObject(ctx, &s3.PutObjectInput{Bucket: &b, Key: &k, Body: bytes.NewReader(data), IfMatch: aws.String(`"other"`)})
	failed(t, err, "PreconditionFailed", http.StatusPreconditionFailed)
	_, err = c.PutObject(ctx, &s3.PutObjectInput{Bucket: &b, Key: aws.String("none"), Body: bytes.NewReader(data), IfMatch: aws.String(`"other"`)})
	failed(t, err, "NoSuchKey", http.StatusNotFound)
	_, err = c.PutObject(ctx, &s3.PutObjectInput{Bucket: &b, Key: &k, Body: bytes.NewReader(data), IfNoneMatch: aws.String(`"x"`)})
	failed(t, err, "NotImplemented", http.StatusNotImplemented)

	for name, want := range map[string][]byte{
		"bytes=0-0": data[:1], "bytes=10-19": data[10:20], "bytes=990-": data[990:], "bytes=-5": data[995:],
		"bytes=0-5000": data, "bytes=-5000": data, "bytes=5-1": data, "lines=1-2": data, "bytes=0-1,3-4": data,
	} {
		got, err := c.GetObject(ctx, &s3.GetObjectInput{Bucket: &b, Key: &k, Range: &name})
		if err != nil || !bytes.Equal(drain(t, got.Body), want) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if partial := len(want) < len(data) || name == "bytes=0-5000" || name == "bytes=-5000"; partial != (got.ContentRange != nil) {
			t.Errorf("%s: Content-Range %v", name, aws.ToString(got.ContentRange))
		}
	}
	for _, name := range []string{"bytes=1000-", "bytes=-0", "bytes=99999999999999999999-"} {
		_, err = c.GetObject(ctx, &s3.GetObjectInput{Bucket: &b, Key: &k, Range: &name})
		failed(t, err, "InvalidRange", http.StatusRequestedRangeNotSatisfiable)
	}
	past, future := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	for name, in := range map[string]*s3.GetObjectInput{
		"matches":          {IfMatch: put.ETag},
		"matches any":      {IfMatch: aws.String("*")},
		"one of a list":    {IfMatch: aws.String(`"x", ` + *put.ETag)},
		"another":          {IfNoneMatch: aws.String(`"x"`)},
		"modified since":   {IfModifiedSince: &past},
		"unmodified since": {IfUnmodifiedSince: &future},
		"304 by tag":       {IfNoneMatch: put.ETag},
		"304 by a list":    {IfNoneMatch: aws.String(`"x", ` + *put.ETag)},
		"304 by date":      {IfModifiedSince: &future},
		"412 by tag":       {IfMatch: aws.String(`"x"`)},
		"412 by date":      {IfUnmodifiedSince: &past},
	} {
		in.Bucket, in.Key = &b, &k
		got, err := c.GetObject(ctx, in)
		want, _ := strings.CutSuffix(name[:min(3, len(name))], " ")
		var response *smithyhttp.ResponseError
		switch status := map[string]int{"304": 304, "412": 412}[want]; {
		case status == 0 && err != nil:
			t.Errorf("%s: %v", name, err)
		case status == 0:
			drain(t, got.Body)
		case !errors.As(err, &response) || response.HTTPStatusCode() != status:
			t.Errorf("%s: %v", name, err)
		case status == 304 && response.Response.Header.Get("ETag") != *put.ETag:
			t.Errorf("%s: headers %v", name, response.Response.Header)
		}
	}
}

// TestList: what listings give, page by page.
func TestList(t *testing.T) {
	t.Parallel()
	w := serve(t, memory(t, nil), nil)
	c, ctx := w.sdk(nil), context.Background()
	b := w.bucket("a-bucket")
	keys := []string{"a", "b/1", "b/2", "c/\x01", "c//x", "d e+f%2F", "ü/ß"}
	for _, k := range keys {
		if _, err := c.PutObject(ctx, &s3.PutObjectInput{Bucket: &b, Key: &k, Body: strings.NewReader(k)}); err != nil {
			t.Fatalf("%q: %v", k, err)
		}
	}
	var got []string
	in := &s3.ListObjectsV2Input{Bucket: &b, MaxKeys: aws.Int32(2), EncodingType: types.EncodingTypeUrl}
	for {
		page, err := c.ListObjectsV2(ctx, in)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range page.Contents {
			got = append(got, unescape(t, *o.Key))
		}
		if !*page.IsTruncated {
			break
		}
		in.ContinuationToken = page.NextContinuationToken
	}
	if !slices.Equal(got, keys) {
		t.Errorf("v2: %q", got)
	}
	got = nil
	v1 := &s3.ListObjectsInput{Bucket: &b, MaxKeys: aws.Int32(2), Delimiter: aws.String("/"), EncodingType: types.EncodingTypeUrl}
	for {
		page, err := c.ListObjects(ctx, v1)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range page.Contents {
			got = append(got, unescape(t, *o.Key))
		}
		for _, p := range page.CommonPrefixes {
			got = append(got, unescape(t, *p.Prefix))
		}
		if !*page.IsTruncated {
			break
		}
		v1.Marker = aws.String(unescape(t, *page.NextMarker))
	}
	slices.Sort(got) // a page has its objects before its prefixes
	if want := []string{"a", "b/", "c/", "d e+f%2F", "ü/"}; !slices.Equal(got, want) {
		t.Errorf("v1: %q", got)
	}
	page, err := c.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &b, StartAfter: aws.String("b/1"), Prefix: aws.String("b/"), FetchOwner: aws.Bool(true)})
	if err != nil || len(page.Contents) != 1 || *page.Contents[0].Key != "b/2" || *page.Contents[0].Owner.ID != owner || page.EncodingType != "" {
		t.Errorf("start after: %+v, %v", page, err)
	}
	// XML has no such character: the answer says that it is escaped.
	page, err = c.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &b, Prefix: aws.String("c/\x01")})
	if err != nil || page.EncodingType != types.EncodingTypeUrl || *page.Contents[0].Key != "c/%01" {
		t.Errorf("unwritable: %+v, %v", page, err)
	}
	none, err := c.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &b, MaxKeys: aws.Int32(0)})
	if err != nil || len(none.Contents) > 0 || *none.IsTruncated {
		t.Errorf("none: %+v, %v", none, err)
	}
	_, err = c.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &b, ContinuationToken: aws.String("!")})
	failed(t, err, "InvalidArgument", http.StatusBadRequest)
	buckets, err := c.ListBuckets(ctx, &s3.ListBucketsInput{})
	if err != nil || len(buckets.Buckets) != 1 || *buckets.Buckets[0].Name != b {
		t.Errorf("buckets: %+v, %v", buckets, err)
	}
}

func unescape(t *testing.T, s string) string {
	t.Helper()
	got, err := url.QueryUnescape(s)
	if err != nil {
		t.Fatal(err)
	}
	return got
}
