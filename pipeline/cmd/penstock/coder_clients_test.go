package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/minio/minio-go/v7"
	miniocredentials "github.com/minio/minio-go/v7/pkg/credentials"
)

// s3Client is a client of the coder that tries nothing twice: what it was not told, it
// does not know.
type s3Client interface {
	put(ctx context.Context, key string, data []byte) error
	// get returns nil and no error if there is no such object.
	get(ctx context.Context, key string) ([]byte, error)
	remove(ctx context.Context, key string) error
	// upload puts an object by a multipart upload.
	upload(ctx context.Context, key string, parts [][]byte) error
}

// client returns one of the two kinds of clients, with connections of its own.
func (w *coderWorld) client(n int) s3Client {
	w.t.Helper()
	transport := &http.Transport{DisableCompression: true}
	w.t.Cleanup(transport.CloseIdleConnections)
	secret := strings.ReplaceAll(coderSecret, " ", "-")
	if n%2 == 0 {
		return awsClient{s3.New(s3.Options{
			BaseEndpoint: aws.String("http://" + w.listen), Region: "us-east-1", UsePathStyle: true,
			HTTPClient: &http.Client{Transport: transport}, RetryMaxAttempts: 1,
			Credentials:                credentials.NewStaticCredentialsProvider(coderAccess, secret, ""),
			RequestChecksumCalculation: aws.RequestChecksumCalculationWhenSupported,
			ResponseChecksumValidation: aws.ResponseChecksumValidationWhenSupported,
		})}
	}
	c, err := minio.NewCore(w.listen, &minio.Options{
		Creds: miniocredentials.NewStaticV4(coderAccess, secret, ""), Region: "us-east-1", Transport: transport,
		BucketLookup: minio.BucketLookupPath, MaxRetries: 1,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return minioClient{c}
}

// awsClient is AWS's.
type awsClient struct{ *s3.Client }

func (c awsClient) put(ctx context.Context, key string, data []byte) error {
	_, err := c.PutObject(ctx, &s3.PutObjectInput{Bucket: aws.String(coderBucket), Key: &key, Body: bytes.NewReader(data)})
	return err
}

func (c awsClient) get(ctx context.Context, key string) ([]byte, error) {
	got, err := c.GetObject(ctx, &s3.GetObjectInput{Bucket: aws.String(coderBucket), Key: &key})
	if none := (*types.NoSuchKey)(nil); errors.As(err, &none) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer got.Body.Close()
	return io.ReadAll(got.Body)
}

func (c awsClient) remove(ctx context.Context, key string) error {
	_, err := c.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: aws.String(coderBucket), Key: &key})
	return err
}

func (c awsClient) upload(ctx context.Context, key string, parts [][]byte) error {
	u, err := c.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: aws.String(coderBucket), Key: &key})
	if err != nil {
		return err
	}
	var done types.CompletedMultipartUpload
	for i, data := range parts {
		n := aws.Int32(int32(i + 1))
		p, err := c.UploadPart(ctx, &s3.UploadPartInput{
			Bucket: aws.String(coderBucket), Key: &key, UploadId: u.UploadId, PartNumber: n, Body: bytes.NewReader(data),
		})
		if err != nil {
			return err
		}
		done.Parts = append(done.Parts, types.CompletedPart{PartNumber: n, ETag: p.ETag})
	}
	_, err = c.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
		Bucket: aws.String(coderBucket), Key: &key, UploadId: u.UploadId, MultipartUpload: &done,
	})
	return err
}

// minioClient is MinIO's.
type minioClient struct{ *minio.Core }

func (c minioClient) put(ctx context.Context, key string, data []byte) error {
	_, err := c.PutObject(ctx, coderBucket, key, bytes.NewReader(data), int64(len(data)), "", "", minio.PutObjectOptions{})
	return err
}

func (c minioClient) get(ctx context.Context, key string) ([]byte, error) {
	body, _, _, err := c.GetObject(ctx, coderBucket, key, minio.GetObjectOptions{})
	if minio.ToErrorResponse(err).Code == minio.NoSuchKey {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return io.ReadAll(body)
}

func (c minioClient) remove(ctx context.Context, key string) error {
	return c.RemoveObject(ctx, coderBucket, key, minio.RemoveObjectOptions{})
}

func (c minioClient) upload(ctx context.Context, key string, parts [][]byte) error {
	id, err := c.NewMultipartUpload(ctx, coderBucket, key, minio.PutObjectOptions{})
	if err != nil {
		return err
	}
	var done []minio.CompletePart
	for i, data := range parts {
		p, err := c.PutObjectPart(ctx, coderBucket, key, id, i+1, bytes.NewReader(data), int64(len(data)), minio.PutObjectPartOptions{})
		if err != nil {
			return err
		}
		done = append(done, minio.CompletePart{PartNumber: i + 1, ETag: p.ETag})
	}
	_, err = c.CompleteMultipartUpload(ctx, coderBucket, key, id, done, minio.PutObjectOptions{})
	return err
}

// makeBucket makes the bucket of the tests.
func (w *coderWorld) makeBucket() {
	w.t.Helper()
	c := w.client(0).(awsClient)
	if _, err := c.CreateBucket(w.t.Context(), &s3.CreateBucketInput{Bucket: aws.String(coderBucket)}); err != nil {
		w.t.Fatal(err)
	}
}

// keys lists all objects.
func (w *coderWorld) keys() (keys []string) {
	w.t.Helper()
	pages := s3.NewListObjectsV2Paginator(w.client(0).(awsClient).Client, &s3.ListObjectsV2Input{Bucket: aws.String(coderBucket)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(w.t.Context())
		if err != nil {
			w.t.Fatal(err)
		}
		for _, o := range page.Contents {
			keys = append(keys, aws.ToString(o.Key))
		}
	}
	return keys
}

// abortUploads ends all uploads that are under way, and says how many those were.
func (w *coderWorld) abortUploads() int {
	w.t.Helper()
	c := w.client(0).(awsClient)
	list, err := c.ListMultipartUploads(w.t.Context(), &s3.ListMultipartUploadsInput{Bucket: aws.String(coderBucket)})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, u := range list.Uploads {
		_, err := c.AbortMultipartUpload(w.t.Context(), &s3.AbortMultipartUploadInput{Bucket: aws.String(coderBucket), Key: u.Key, UploadId: u.UploadId})
		if err != nil {
			w.t.Fatal(err)
		}
	}
	return len(list.Uploads)
}
