package manifest

// Store is an objectstore.Store over a Backend.
type Store struct {
	b Backend
	o Options
}

// New returns a Store over a backend.
func New(b Backend, o Options) *Store {
	o.complete()
	return &Store{b: b, o: o}
}
