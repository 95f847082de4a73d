package s3front

import "errors"

var (
	// ErrOptions is returned by New for options that make no front. Nothing is bound.
	ErrOptions = errors.New("unusable options of an S3 front")
	// ErrDoor is returned by New for an address off loopback without TLS that isn't
	// said to be public.
	ErrDoor = errors.New("TLS is needed off loopback")
	// ErrKeys is returned by ParseKeys and ReadKeys for a file that holds no keys, or a
	// line that is none; the text names file and line.
	ErrKeys = errors.New("not a file of keys")
	// ErrServed is returned by Run when it was called before.
	ErrServed = errors.New("the front has served")
)
