package s3

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"penstock/infra/objectstore/manifest"
	"penstock/infra/testserver"
)

// options of a store in a fresh bucket.
func options(t *testing.T) Options {
	t.Helper()
	s := testserver.VersityGW(t)
	return Options{
		Endpoint: s.Endpoint, Region: s.Region, AccessKey: s.AccessKey, SecretKey: s.SecretKey,
		Bucket: s.Bucket(t), Prefix: "some/where", PartSize: minPart,
		Manifest: manifest.Options{Lease: 2 * time.Second},
	}
}

func open(t *testing.T, o Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

type objectInfo = minio.ObjectInfo

var noOptions minio.PutObjectOptions

func isConflict(err error) bool { return errors.Is(err, manifest.ErrConflict) }

func newServer(t *testing.T, h http.Handler) (url string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}
