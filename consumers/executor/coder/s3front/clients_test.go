package s3front

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"penstock/consumers/executor/coder"
)

// TestTrailing: over TLS AWS's client sends the checksum behind a body that it reads
// once.
func TestTrailing(t *testing.T) {
	t.Parallel()
	w := serve(t, memory(t, nil), func(o *Options) { o.TLS = certificate(t) })
	b := w.bucket("a-bucket")
	var trailers int
	c := w.sdk(func(o *s3.Options) {
		o.HTTPClient = counting{o.HTTPClient, func(r *http.Request) {
			if r.Header.Get("X-Amz-Trailer") != "" && r.Header.Get("X-Amz-Content-Sha256") == "STREAMING-UNSIGNED-PAYLOAD-TRAILER" {
				trailers++
			}
		}}
	})
	for i, algorithm := range types.ChecksumAlgorithm("").Values()[:5] {
		data := noise(1+i*300_001, 5)
		k := string(algorithm)
		_, err := c.PutObject(t.Context(), &s3.PutObjectInput{
			Bucket: &b, Key: &k, Body: io.NopCloser(bytes.NewReader(data)), ContentLength: aws.Int64(int64(len(data))), ChecksumAlgorithm: algorithm,
		})
		if err != nil {
			t.Fatalf("%s: %v", k, err)
		}
		got, err := c.GetObject(t.Context(), &s3.GetObjectInput{Bucket: &b, Key: &k, ChecksumMode: types.ChecksumModeEnabled})
		if err != nil || !bytes.Equal(drain(t, got.Body), data) || got.ChecksumType != types.ChecksumTypeFullObject {
			t.Errorf("%s: %+v, %v", k, got, err)
		}
	}
	if trailers != 5 {
		t.Errorf("%d bodies had trailers", trailers)
	}
}

// counting is a client whose requests are looked at.
type counting struct {
	s3.HTTPClient

	look func(*http.Request)
}

func (c counting) Do(r *http.Request) (*http.Response, error) {
	c.look(r)
	return c.HTTPClient.Do(r)
}

// TestPresigned: who has the URL may do what it says, until it ends.
func TestPresigned(t *testing.T) {
	t.Parallel()
	e := memory(t, nil)
	w := serve(t, e, nil)
	b, k := w.bucket("a-bucket"), "a key/ü"
	p := s3.NewPresignClient(w.sdk(func(o *s3.Options) { o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired }))
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	do := func(method, url, body string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		return res.StatusCode, string(drain(t, res.Body))
	}
	put, err := p.PresignPutObject(t.Context(), &s3.PutObjectInput{Bucket: &b, Key: &k})
	if err != nil {
		t.Fatal(err)
	}
	if status, text := do(http.MethodPut, put.URL, "data"); status != 200 {
		t.Errorf("put: %d %s", status, text)
	}
	get, err := p.PresignGetObject(t.Context(), &s3.GetObjectInput{Bucket: &b, Key: &k, ResponseContentType: aws.String("text/z")}, s3.WithPresignExpires(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	if status, text := do(http.MethodGet, get.URL, ""); status != 200 || text != "data" {
		t.Errorf("get: %d %s", status, text)
	}
	for name, url := range map[string]string{
		"another method":    put.URL,
		"another key":       strings.Replace(get.URL, "a%20key", "b%20key", 1),
		"for longer":        strings.Replace(get.URL, "X-Amz-Expires=60", "X-Amz-Expires=600", 1),
		"without signature": strings.Replace(get.URL, "X-Amz-Signature=", "X-Nothing=", 1),
	} {
		if status, text := do(http.MethodGet, url, ""); status < 400 || strings.Contains(text, "data</") {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+"/"+b+"/k?X-Amz-Expires=60", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	signed, _, err := v4.NewSigner().PresignHTTP(t.Context(), aws.Credentials{AccessKeyID: access, SecretAccessKey: testKeys()[access].Secret},
		r, "UNSIGNED-PAYLOAD", "s3", region, time.Now().Add(-2*time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	if status, text := do(http.MethodGet, signed, ""); status != 403 || !strings.Contains(text, "Request has expired") {
		t.Errorf("too late: %d %s", status, text)
	}
}

// TestMinio: another client, whose bodies are signed chunk by chunk.
func TestMinio(t *testing.T) {
	t.Parallel()
	w := serve(t, memory(t, nil), nil)
	b := w.bucket("a-bucket")
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	k := testKeys()[access]
	for name, trailing := range map[string]bool{"signed": false, "trailing": true} {
		c, err := minio.New(w.front.Addr(), &minio.Options{
			Creds: credentials.NewStaticV4(k.Access, k.Secret, ""), Region: region, Transport: transport, TrailingHeaders: trailing,
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, size := range []int{0, 1, 64 << 10, 1<<20 + 3, 11 << 20} {
			data := noise(size, 9)
			info, err := c.PutObject(t.Context(), b, name, bytes.NewReader(data), int64(size), minio.PutObjectOptions{
				UserMetadata: map[string]string{"A": "b"}, PartSize: coder.MinPart,
			})
			if err != nil {
				t.Fatalf("%s, %d: %v", name, size, err)
			}
			o, err := c.GetObject(t.Context(), b, name, minio.GetObjectOptions{})
			if err != nil {
				t.Fatal(err)
			}
			stat, err := o.Stat()
			if got := drain(t, o); err != nil || !bytes.Equal(got, data) || stat.ETag != info.ETag || stat.UserMetadata["A"] != "b" {
				t.Errorf("%s, %d: %d bytes, %+v, %v", name, size, len(got), stat, err)
			}
		}
		var names []string
		for o := range c.ListObjects(t.Context(), b, minio.ListObjectsOptions{Recursive: true}) {
			if o.Err != nil {
				t.Fatal(o.Err)
			}
			names = append(names, o.Key)
		}
		if len(names) == 0 {
			t.Error("nothing listed")
		}
		for err := range c.RemoveObjects(t.Context(), b, c.ListObjects(t.Context(), b, minio.ListObjectsOptions{}), minio.RemoveObjectsOptions{}) {
			t.Error(err.Err)
		}
	}
	if _, err := w.sdk(nil).DeleteBucket(context.Background(), &s3.DeleteBucketInput{Bucket: &b}); err != nil {
		t.Error(err)
	}
}
