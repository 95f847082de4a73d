package jetstream

import (
	"fmt"
	"sync/atomic"
	"testing"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/infra/objectstore"
	"penstock/infra/objectstore/objectstoretest"
)

var bucket atomic.Int64

func open(t testing.TB, c *bus.Client, name string) *Store {
	t.Helper()
	s, err := Open(t.Context(), Options{JS: c.JS, Bucket: name})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func fresh() string { return fmt.Sprintf("store-%d", bucket.Add(1)) }

func TestConformance(t *testing.T) {
	c := bustest.Client(t, bustest.Start(t))
	objectstoretest.Run(t, func(t *testing.T) objectstore.Store { return open(t, c, fresh()) }, objectstoretest.Options{Large: 64 << 20, Memory: 48 << 20})
}
