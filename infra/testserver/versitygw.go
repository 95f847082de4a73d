package testserver

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"penstock/infra/clock"
)

const (
	gatewayModule  = "github.com/versity/versitygw/cmd/versitygw"
	gatewayVersion = "v1.8.0"
	gatewayRegion  = "us-east-1"
	// gatewayStarts is how often a start is tried on another port: a free port
	// may be taken between the choice and the start.
	gatewayStarts = 5
	// gatewayPatience is how long a start may take on a loaded machine.
	gatewayPatience = 30 * time.Second
)

// S3 is an S3 server for tests.
type S3 struct {
	// Endpoint is the address with its scheme: http://127.0.0.1:PORT.
	Endpoint string
	// Region is the one that the server answers to.
	Region string
	// AccessKey and SecretKey are those of its root account.
	AccessKey, SecretKey string

	folder string // of the buckets
}

// gateway is this test binary's server.
var gateway struct {
	once   sync.Once
	server S3
	err    error
	alive  *os.File // closing it ends the server; the system does when this process ends
}

// VersityGW returns the S3 server of this test binary, versitygw on a temporary
// folder, and starts it before if this is the first call. It ends with the
// process, however that ends. Where it can't be had the test fails.
func VersityGW(t testing.TB) S3 {
	t.Helper()
	gateway.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), installPatience)
		defer cancel()
		gateway.server, gateway.err = startGateway(ctx)
	})
	if gateway.err != nil {
		t.Fatalf("versitygw: %v", gateway.err)
	}
	return gateway.server
}

// Bucket makes a bucket that is removed when the test ends, and returns its
// name.
func (s S3) Bucket(t testing.TB) string {
	t.Helper()
	c, closeIdle, err := s.client()
	if err != nil {
		t.Fatal(err)
	}
	defer closeIdle()
	name := "penstock-" + randomHex(8)
	if err := c.MakeBucket(context.Background(), name, minio.MakeBucketOptions{Region: s.Region}); err != nil {
		t.Fatalf("make bucket: %v", err)
	}
	// Removing it by the API would take a request for every object.
	t.Cleanup(func() { _ = os.RemoveAll(filepath.Join(s.folder, name)) })
	return name
}

// Folder is where the objects of a bucket lie as files. What is put there by hand
// is an object too, one without an ETag.
func (s S3) Folder(bucket string) string { return filepath.Join(s.folder, bucket) }

// PID is the number of its process.
func (s S3) PID() (int, error) { return (&Program{home: filepath.Dir(s.folder)}).PID() }

// Client returns a client of the server, which is closed when the test ends.
func (s S3) Client(t testing.TB) *minio.Client {
	t.Helper()
	c, closeIdle, err := s.client()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(closeIdle)
	return c
}

func (s S3) client() (c *minio.Client, closeIdle func(), err error) {
	// A connection for each request: this server does not read all that some of
	// them send, and takes the rest for the next request.
	transport := &http.Transport{DisableKeepAlives: true}
	c, err = minio.New(s.Endpoint[len("http://"):], &minio.Options{
		Creds: credentials.NewStaticV4(s.AccessKey, s.SecretKey, ""), Region: s.Region,
		Transport: transport, MaxRetries: 1, BucketLookup: minio.BucketLookupPath,
	})
	return c, transport.CloseIdleConnections, err
}

func startGateway(ctx context.Context) (S3, error) {
	program, err := install(ctx, gatewayModule, gatewayVersion)
	if err != nil {
		return S3{}, err
	}
	var tries []error
	for range gatewayStarts {
		s, err := tryGateway(ctx, program)
		if err == nil {
			return s, nil
		}
		tries = append(tries, err)
		if ctx.Err() != nil {
			break
		}
	}
	return S3{}, errors.Join(tries...)
}

// tryGateway starts the server on one port and waits until it answers.
func tryGateway(ctx context.Context, program string) (s S3, err error) {
	home, err := os.MkdirTemp("", "penstock-versitygw-")
	if err != nil {
		return S3{}, fmt.Errorf("make folder: %w", err)
	}
	guarded := false
	defer func() {
		if !guarded { // else the guard removes it
			_ = os.RemoveAll(home)
		}
	}()
	s = S3{
		Region: gatewayRegion, AccessKey: "root" + randomHex(8), SecretKey: randomHex(20),
		folder: filepath.Join(home, "buckets"),
	}
	address, err := freeAddress(ctx)
	if err != nil {
		return S3{}, err
	}
	s.Endpoint = "http://" + address
	args := []string{"--port", address, "--region", s.Region, "--keep-alive", "--quiet", "posix"}
	if err := os.Mkdir(s.folder, 0o700); err != nil {
		return S3{}, fmt.Errorf("make folder: %w", err)
	}
	if !hasAttributes(home) {
		sidecar := filepath.Join(home, "sidecar")
		if err := os.Mkdir(sidecar, 0o700); err != nil {
			return S3{}, fmt.Errorf("make folder: %w", err)
		}
		args = append(args, "--sidecar", sidecar)
	}
	g := guarding{
		home: home, signal: "KILL", env: []string{"ROOT_ACCESS_KEY=" + s.AccessKey, "ROOT_SECRET_KEY=" + s.SecretKey},
	}
	alive, err := g.start(program, append(args, s.folder)...)
	if err != nil {
		return S3{}, err
	}
	guarded = true
	if err := s.await(ctx); err != nil {
		log, _ := os.ReadFile(filepath.Join(home, logFile))
		_ = alive.Close()
		return S3{}, fmt.Errorf("%w; it said: %s", err, log)
	}
	gateway.alive = alive
	return s, nil
}

// await waits until the server answers to the keys that only ours knows.
func (s S3) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, gatewayPatience)
	defer cancel()
	c, closeIdle, err := s.client()
	if err != nil {
		return err
	}
	defer closeIdle()
	for {
		_, err := c.ListBuckets(ctx)
		if err == nil {
			return nil
		}
		if code := minio.ToErrorResponse(err).Code; code == "InvalidAccessKeyId" || code == "SignatureDoesNotMatch" {
			return fmt.Errorf("another server answers at %s: %w", s.Endpoint, err)
		}
		if clock.System().Sleep(ctx, 10*time.Millisecond) != nil {
			return fmt.Errorf("no answer from %s: %w", s.Endpoint, err)
		}
	}
}

func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}
