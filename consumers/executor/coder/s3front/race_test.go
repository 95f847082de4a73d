//go:build race

package s3front

// racing tells that the race detector is on, which makes digests and codes some ten
// times slower.
const racing = true
