package aggregator

import "errors"

var (
	// ErrCommit is returned by Run when the last message on a windows subject is
	// no commit that this version can read. Nothing was written.
	ErrCommit = errors.New("the last commit cannot be read")

	// ErrOptions is returned by New for options that cannot work.
	ErrOptions = errors.New("aggregator options")

	// errFenced ends a session: another claimed the partition. The state is
	// dropped.
	errFenced = errors.New("fenced by another aggregator")

	// errReleased ends a session: the advice names another, and everything is
	// flushed.
	errReleased = errors.New("released to another aggregator")
)
