package shipping_test

import (
	"testing"
	"testing/synctest"
	"time"

	"penstock/consumers/executor/coder/catalog"
	"penstock/consumers/executor/coder/catalog/shipping"
)

// empty takes everything out of a store, the marker too.
func (f *flaky) empty(t testing.TB) {
	t.Helper()
	list, err := f.Memory.List(t.Context(), "", "", 1<<20)
	must(t, err)
	for _, e := range list {
		must(t, f.Memory.Delete(t.Context(), e.Key))
	}
}

// TestEmptiedStores empties one store of three after the other while nothing restarts: as
// each is found bare before the next is emptied, the catalog outlives all of them.
func TestEmptiedStores(t *testing.T) {
	t.Parallel()
	for _, busy := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := fresh(t)
			flakies, list := stores(3)
			s, stop := ship(t, shipping.Options{Catalog: c, Stores: list, Need: 2})
			put(t, c, 0, 20)
			must(t, s.Sync(t.Context()))
			for i, f := range flakies {
				f.empty(t)
				if busy {
					put(t, c, 20+i, 1)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				marker := f.read(t, "objects/owner")
				if other := flakies[(i+1)%3].read(t, "objects/owner"); string(marker) != string(other) {
					t.Errorf("store %d has another marker than the others", i)
				}
			}
			if got := s.Stats(); got.Snapshots == 0 || got.Pending != 0 {
				t.Errorf("%+v", got)
			}
			must(t, stop())
			back, _ := rebuilt(t, 2, list[1:])
			if err := catalog.Compare(c, back); err != nil {
				t.Error(err)
			}
		})
	}
}
