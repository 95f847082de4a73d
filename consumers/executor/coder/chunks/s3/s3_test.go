package s3

import (
	"testing"

	"penstock/consumers/executor/coder/chunks"
	"penstock/consumers/executor/coder/chunks/chunkstest"
	"penstock/infra/testserver"
)

func options(t testing.TB) Options {
	t.Helper()
	s := testserver.VersityGW(t)
	return Options{
		Name: "bucket", Endpoint: s.Endpoint, Region: s.Region, AccessKey: s.AccessKey, SecretKey: s.SecretKey,
		Bucket: s.Bucket(t), Prefix: "some/where", PartSize: minPart,
	}
}

func open(t testing.TB, o Options) *Store {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestSuite(t *testing.T) {
	t.Parallel()
	chunkstest.Suite(t, func(t *testing.T) chunks.Store { return open(t, options(t)) })
}
