// Package routertest says by tests what a router.Target is: each target passes
// Run.
//
// # Failures
//
// A World that can't do what a case asks for fails it; what a target has no notion
// of (it can't be cut off, say) is left nil in its World, and the case is not run.
package routertest
