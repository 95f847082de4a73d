package s3front

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/rs/zerolog"
)

// The keys of tests.
const (
	region     = "eu-test-1"
	access     = "writer"
	readAccess = "reader"
)

func testKeys() Keys {
	return Keys{
		access:     {Access: access, Secret: "a-secret-of-the-writer"},
		readAccess: {Access: readAccess, Secret: "a-secret-of-the-reader", ReadOnly: true},
	}
}

// world is a front that serves, and clients of it.
type world struct {
	t     testing.TB
	front *Front
	url   string
	tls   *tls.Config // of clients, if it has TLS

	mu   sync.Mutex
	seen []Request
	told chan struct{} // has one when something was seen
}

// serve starts a front over an engine; change may change its options.
func serve(t testing.TB, e *engine, change func(*Options)) *world {
	t.Helper()
	w := &world{t: t, told: make(chan struct{}, 1)}
	logger := zerolog.New(zerolog.NewTestWriter(t))
	o := Options{
		Coder: e.Coder, Keys: testKeys(), Listen: "127.0.0.1:0", Region: region, Idle: 10 * time.Second,
		Logger: &logger, Observe: w.observe,
	}
	if change != nil {
		change(&o)
	}
	f, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	w.front, w.url = f, "http://"+f.Addr()
	if o.TLS != nil {
		w.url = "https://" + f.Addr()
		roots := x509.NewCertPool()
		roots.AddCert(o.TLS.Certificates[0].Leaf)
		w.tls = &tls.Config{RootCAs: roots}
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *world) observe(r Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, r)
	select {
	case w.told <- struct{}{}:
	default:
	}
}

// await waits until so many requests have ended, and returns them.
func (w *world) await(n int) []Request {
	w.t.Helper()
	limit := time.After(20 * time.Second)
	for {
		w.mu.Lock()
		seen := w.seen
		w.mu.Unlock()
		if len(seen) >= n {
			return seen
		}
		select {
		case <-w.told:
		case <-limit:
			w.t.Fatalf("%d requests ended, expected %d: %+v", len(seen), n, seen)
		}
	}
}

// sdk returns a client of AWS's, as it comes.
func (w *world) sdk(change func(*s3.Options)) *s3.Client {
	transport := &http.Transport{TLSClientConfig: w.tls}
	w.t.Cleanup(transport.CloseIdleConnections)
	k := testKeys()[access]
	o := s3.Options{
		BaseEndpoint: aws.String(w.url), Region: region, UsePathStyle: true, HTTPClient: &http.Client{Transport: transport},
		Credentials: credentials.NewStaticCredentialsProvider(k.Access, k.Secret, ""), RetryMaxAttempts: 1,
		// That is how the client comes if its options are read from its files.
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenSupported,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenSupported,
	}
	if change != nil {
		change(&o)
	}
	return s3.New(o)
}

// bucket makes a bucket.
func (w *world) bucket(name string) string {
	w.t.Helper()
	if _, err := w.sdk(nil).CreateBucket(context.Background(), &s3.CreateBucketInput{Bucket: &name}); err != nil {
		w.t.Fatal(err)
	}
	return name
}

// drain reads a body to its end.
func drain(t testing.TB, r io.ReadCloser) []byte {
	t.Helper()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return b
}
