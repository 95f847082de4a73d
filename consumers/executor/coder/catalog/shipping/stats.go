package shipping

import "maps"

// Stats are counted since New.
type Stats struct {
	// Pending are the changes that aren't shipped yet, Shipped up to where they are.
	Pending, Shipped uint64
	// Based tells that a rebuild would find all that is shipped.
	Based bool
	// Batches, Changes and Bytes of changes that were shipped.
	Batches, Changes, Bytes uint64
	// Snapshots that were taken, and blobs deleted after them.
	Snapshots, Pruned uint64
	Stores            []StoreStats
}

// StoreStats are of one store.
type StoreStats struct {
	Name string
	// Passed are blobs that the store didn't get because it was busy with earlier ones.
	Passed uint64
	// Failed are requests that it failed: put, owner, list, prune.
	Failed map[string]uint64
}

// Stats gives the counts, stores in the order of the options.
func (s *Shipper) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	stats.Shipped, stats.Based = s.shipped, s.based
	stats.Pending = max(s.o.Catalog.Seq(), s.shipped) - s.shipped
	for _, store := range s.o.Stores {
		one := *s.stores[store.Name()]
		one.Failed = maps.Clone(one.Failed)
		stats.Stores = append(stats.Stores, one)
	}
	return stats
}
