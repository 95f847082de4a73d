package movertest

import (
	"testing"

	"penstock/infra/objectstore"
	"penstock/infra/objectstore/s3"
	"penstock/infra/testserver"
)

func s3Store(t *testing.T, server testserver.S3, bucket, prefix string) objectstore.Store {
	t.Helper()
	s, err := s3.Open(t.Context(), s3.Options{
		Endpoint: server.Endpoint, Region: server.Region, AccessKey: server.AccessKey, SecretKey: server.SecretKey,
		Bucket: bucket, Prefix: prefix,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if !s.Capabilities().Barrier {
		t.Fatal("the server does not honour conditional writes")
	}
	return s
}

// TestS3: two sites share a bucket, the third has its own.
func TestS3(t *testing.T) {
	server := testserver.VersityGW(t)
	shared := server.Bucket(t)
	Run(t, map[string]objectstore.Store{
		"a": s3Store(t, server, shared, "a"), "b": s3Store(t, server, shared, "b"), "c": s3Store(t, server, server.Bucket(t), ""),
	}, Objects)
}
