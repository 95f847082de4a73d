// Package shaped puts delays and faults before a store of blobs: what the coder is tried
// and shown over, where a real store would neither be slow as the model says nor break
// when it is told to.
//
// Delays are drawn from laws (PAPERS §3.2) by a seeded generator, in the order in which
// calls come, and waited for before the store is asked: a call that ends while it waits
// has done nothing, and frees its connection at once, as a request that is cut does. A
// store in memory or in a folder on a fast disk adds next to nothing to them.
//
// Faults are of two kinds. Those of Faults last as long as they are set: calls that
// fail, hang or are slower, answers that are wrong. Harm damages what is stored, once and
// for good, so that only a repair mends it.
//
// States: a Store may be told other laws and faults at any time, by any goroutine; calls
// that have begun go by what held then. Failures: those of the store below, ErrInjected,
// and the context's error.
package shaped
