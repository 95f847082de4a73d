package s3front

import (
	"bytes"
	"context"
	"crypto/md5"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"penstock/consumers/executor/coder"
)

// TestMultipart uploads in parts, by every algorithm of checksums.
func TestMultipart(t *testing.T) {
	t.Parallel()
	w := serve(t, memory(t, nil), nil)
	c, ctx := w.sdk(nil), context.Background()
	b := w.bucket("a-bucket")
	data := noise(2*coder.MinPart+1000, 3)
	if _, err := c.PutObject(ctx, &s3.PutObjectInput{Bucket: &b, Key: aws.String("source"), Body: bytes.NewReader(data)}); err != nil {
		t.Fatal(err)
	}
	for _, algorithm := range append(types.ChecksumAlgorithm("").Values()[:5], "") {
		t.Run("checksum "+string(algorithm), func(t *testing.T) {
			k := "parts by " + string(algorithm)
			u, err := c.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{
				Bucket: &b, Key: &k, ChecksumAlgorithm: algorithm, ContentType: aws.String("text/y"), Metadata: map[string]string{"m": "x"},
			})
			if err != nil {
				t.Fatal(err)
			}
			var done types.CompletedMultipartUpload
			var sums []byte
			for i, piece := range [][]byte{data[:coder.MinPart], data[coder.MinPart : 2*coder.MinPart], data[2*coder.MinPart:]} {
				n := int32(2*i + 1)
				part, etag := types.CompletedPart{PartNumber: &n}, md5.Sum(piece)
				if i == 1 {
					p, err := c.UploadPartCopy(ctx, &s3.UploadPartCopyInput{
						Bucket: &b, Key: &k, UploadId: u.UploadId, PartNumber: &n, CopySource: aws.String(b + "/source"),
						CopySourceRange: aws.String(fmt.Sprintf("bytes=%d-%d", coder.MinPart, 2*coder.MinPart-1)),
					})
					if err != nil {
						t.Fatal(err)
					}
					part.ETag = p.CopyPartResult.ETag
					part.ChecksumCRC32, part.ChecksumCRC32C, part.ChecksumCRC64NVME = p.CopyPartResult.ChecksumCRC32, p.CopyPartResult.ChecksumCRC32C, p.CopyPartResult.ChecksumCRC64NVME
					part.ChecksumSHA1, part.ChecksumSHA256 = p.CopyPartResult.ChecksumSHA1, p.CopyPartResult.ChecksumSHA256
				} else {
					p, err := c.UploadPart(ctx, &s3.UploadPartInput{
						Bucket: &b, Key: &k, UploadId: u.UploadId, PartNumber: &n, Body: bytes.NewReader(piece), ChecksumAlgorithm: algorithm,
					})
					if err != nil {
						t.Fatal(err)
					}
					part.ETag = p.ETag
					part.ChecksumCRC32, part.ChecksumCRC32C, part.ChecksumCRC64NVME = p.ChecksumCRC32, p.ChecksumCRC32C, p.ChecksumCRC64NVME
					part.ChecksumSHA1, part.ChecksumSHA256 = p.ChecksumSHA1, p.ChecksumSHA256
				}
				if got := *part.ETag; got != fmt.Sprintf(`"%x"`, etag) {
					t.Errorf("part %d: %s", n, got)
				}
				sums = append(sums, etag[:]...)
				done.Parts = append(done.Parts, part)
			}
			parts, err := c.ListParts(ctx, &s3.ListPartsInput{Bucket: &b, Key: &k, UploadId: u.UploadId, MaxParts: aws.Int32(2)})
			if err != nil || len(parts.Parts) != 2 || !*parts.IsTruncated || *parts.NextPartNumberMarker != "3" {
				t.Errorf("parts: %+v, %v", parts, err)
			}
			whole, err := c.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{Bucket: &b, Key: &k, UploadId: u.UploadId, MultipartUpload: &done})
			if err != nil {
				t.Fatal(err)
			}
			if want := fmt.Sprintf(`"%x-3"`, md5.Sum(sums)); *whole.ETag != want {
				t.Errorf("%s, expected %s", *whole.ETag, want)
			}
			got, err := c.GetObject(ctx, &s3.GetObjectInput{Bucket: &b, Key: &k})
			if err != nil || !bytes.Equal(drain(t, got.Body), data) || *got.ContentType != "text/y" || got.Metadata["m"] != "x" {
				t.Errorf("get: %v", err)
			}
			third, err := c.GetObject(ctx, &s3.GetObjectInput{Bucket: &b, Key: &k, PartNumber: aws.Int32(5)})
			if err != nil || !bytes.Equal(drain(t, third.Body), data[2*coder.MinPart:]) || *third.PartsCount != 3 {
				t.Errorf("get part: %+v, %v", third, err)
			}
			_, err = c.GetObject(ctx, &s3.GetObjectInput{Bucket: &b, Key: &k, PartNumber: aws.Int32(6)})
			failed(t, err, "InvalidPartNumber", http.StatusRequestedRangeNotSatisfiable)
			about, err := c.GetObjectAttributes(ctx, &s3.GetObjectAttributesInput{Bucket: &b, Key: &k, ObjectAttributes: []types.ObjectAttributes{"ETag", "ObjectSize", "ObjectParts", "Checksum", "StorageClass"}})
			if err != nil || *about.ObjectSize != int64(len(data)) || len(about.ObjectParts.Parts) != 3 || (about.Checksum == nil) != (algorithm == "") {
				t.Errorf("attributes: %+v, %v", about, err)
			}
			_, err = c.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &b, Key: &k, UploadId: u.UploadId})
			failed(t, err, "NoSuchUpload", http.StatusNotFound)
		})
	}
}

// TestMultipartRefused: uploads that can't be completed stay as they are.
func TestMultipartRefused(t *testing.T) {
	t.Parallel()
	w := serve(t, memory(t, nil), nil)
	c, ctx := w.sdk(nil), context.Background()
	b, k := w.bucket("a-bucket"), "key"
	u, err := c.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: &b, Key: &k, ChecksumAlgorithm: types.ChecksumAlgorithmCrc32})
	if err != nil {
		t.Fatal(err)
	}
	tags := map[int32]*string{}
	for n := int32(1); n <= 2; n++ {
		p, err := c.UploadPart(ctx, &s3.UploadPartInput{Bucket: &b, Key: &k, UploadId: u.UploadId, PartNumber: &n, Body: strings.NewReader("small")})
		if err != nil {
			t.Fatal(err)
		}
		tags[n] = p.ETag
	}
	complete := func(parts ...types.CompletedPart) error {
		_, err := c.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
			Bucket: &b, Key: &k, UploadId: u.UploadId, MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
		})
		return err
	}
	part := func(n int32) types.CompletedPart { return types.CompletedPart{PartNumber: &n, ETag: tags[n]} }
	failed(t, complete(part(1), part(2)), "EntityTooSmall", 400)
	failed(t, complete(part(2), part(1)), "InvalidPartOrder", 400)
	failed(t, complete(types.CompletedPart{PartNumber: aws.Int32(3), ETag: tags[1]}), "InvalidPart", 400)
	failed(t, complete(types.CompletedPart{PartNumber: aws.Int32(1), ETag: aws.String("x")}), "InvalidPart", 400)
	failed(t, complete(types.CompletedPart{PartNumber: aws.Int32(1), ETag: tags[1], ChecksumCRC32: aws.String("AAAAAA==")}), "InvalidPart", 400)
	failed(t, complete(), "MalformedXML", 400)
	_, err = c.UploadPart(ctx, &s3.UploadPartInput{Bucket: &b, Key: &k, UploadId: u.UploadId, PartNumber: aws.Int32(1), Body: strings.NewReader("x"), ChecksumAlgorithm: types.ChecksumAlgorithmSha1})
	failed(t, err, "InvalidRequest", 400)
	_, err = c.UploadPart(ctx, &s3.UploadPartInput{Bucket: &b, Key: &k, UploadId: aws.String("none"), PartNumber: aws.Int32(1), Body: strings.NewReader("x")})
	failed(t, err, "NoSuchUpload", 404)
	_, err = c.UploadPart(ctx, &s3.UploadPartInput{Bucket: &b, Key: &k, UploadId: u.UploadId, PartNumber: aws.Int32(10_001), Body: strings.NewReader("x")})
	failed(t, err, "InvalidArgument", 400)
	_, err = c.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: &b, Key: &k, ChecksumAlgorithm: types.ChecksumAlgorithmXxhash3})
	failed(t, err, "NotImplemented", 501)
	if err := complete(part(2)); err != nil {
		t.Error(err)
	}
}

// TestUploads: uploads under way by pages and common prefixes.
func TestUploads(t *testing.T) {
	t.Parallel()
	w := serve(t, memory(t, nil), nil)
	c, ctx := w.sdk(nil), context.Background()
	b := w.bucket("a-bucket")
	for _, k := range []string{"a", "a", "d/1", "d/2", "d/2", "e", "f/1"} {
		if _, err := c.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: &b, Key: &k}); err != nil {
			t.Fatal(err)
		}
	}
	for delimiter, want := range map[string][]string{"": {"a", "a", "d/1", "d/2", "d/2", "e", "f/1"}, "/": {"a", "a", "d/", "e", "f/"}} {
		for most := int32(1); most < 9; most++ {
			var got []string
			in := &s3.ListMultipartUploadsInput{Bucket: &b, MaxUploads: &most}
			if delimiter != "" {
				in.Delimiter = &delimiter
			}
			for range 20 {
				page, err := c.ListMultipartUploads(ctx, in)
				if err != nil {
					t.Fatal(err)
				}
				for _, u := range page.Uploads {
					got = append(got, *u.Key)
				}
				for _, p := range page.CommonPrefixes {
					got = append(got, *p.Prefix)
				}
				if !*page.IsTruncated {
					break
				}
				in.KeyMarker, in.UploadIdMarker = page.NextKeyMarker, page.NextUploadIdMarker
			}
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("by %q and %d: %q", delimiter, most, got)
			}
		}
	}
}
