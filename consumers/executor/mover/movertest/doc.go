// Package movertest shows what a mover promises of a set of stores, whatever their
// backends: an owner that is written to without pause, through a client of the
// store, is moved again and again between all pairs of them, and every write that
// was acknowledged can be read afterwards, in order (DESIGN §4.1).
//
// A client is a Writer: what an application does that stores an owner's data and
// knows nothing of the mover but the error that says where the data went. Objects
// is one that goes through objectstore.Store; a backend that is also written to by
// other means (SQL, an S3 client) brings its own.
package movertest
