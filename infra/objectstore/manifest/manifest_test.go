package manifest

import (
	"testing"

	"penstock/infra/objectstore"
	"penstock/infra/objectstore/objectstoretest"
)

func open(t testing.TB, b Backend, o Options) *Store {
	t.Helper()
	s := New(b, o)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestConformance(t *testing.T) {
	objectstoretest.Run(t, func(t *testing.T) objectstore.Store { return open(t, NewMemory(nil), Options{}) }, objectstoretest.Options{Memory: -1})
}
