package s3

import (
	"cmp"
	"os"
	"testing"

	"github.com/rs/zerolog"

	"penstock/infra/objectstore"
	"penstock/infra/objectstore/objectstoretest"
	"penstock/infra/testserver"
)

// options of a store in a fresh bucket.
func options(t *testing.T) Options {
	t.Helper()
	s := testserver.VersityGW(t)
	return Options{
		Endpoint: s.Endpoint, Region: s.Region, AccessKey: s.AccessKey, SecretKey: s.SecretKey,
		Bucket: s.Bucket(t), Prefix: "some/where", PartSize: minPart,
		Logger: zerolog.New(os.Stderr).Level(cmp.Or(zerolog.WarnLevel, zerolog.Disabled)),
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

// TestConformance runs the suite of all stores against a real server.
func TestConformance(t *testing.T) {
	if !open(t, options(t)).Capabilities().Barrier {
		t.Fatal("no barrier: the suite would leave out what matters")
	}
	objectstoretest.Run(t, func(t *testing.T) objectstore.Store { return open(t, options(t)) })
}
