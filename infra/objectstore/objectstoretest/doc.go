// Package objectstoretest is the specification of objectstore.Store as tests:
// every backend passes it, or is none. Run takes a function that makes an empty
// store; the parts about appending run where the store can, those about the
// barrier where it says that it has one.
package objectstoretest
