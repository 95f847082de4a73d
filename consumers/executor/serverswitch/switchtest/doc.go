// Package switchtest is the conformance suite of server switch backends: every
// serverswitch.Backend has to pass Run.
package switchtest
