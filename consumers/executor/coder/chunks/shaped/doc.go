// Package shaped puts delays before a store of blobs: what the coder is tried and shown
// over, where a real store would not be slow as the model says.
//
// Delays are drawn from laws (PAPERS §3.2) by a seeded generator, in the order in which
// calls come, and waited for before the store is asked: a call that ends while it waits
// has done nothing, and frees its connection at once, as a request that is cut does. A
// store in memory or in a folder on a fast disk adds next to nothing to them.
//
// States: a Store may be told other laws at any time, by any goroutine; calls that have
// begun go by what held then. Failures: those of the store below, and the context's
// error.
package shaped
