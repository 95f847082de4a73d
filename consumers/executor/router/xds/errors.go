package xds

import "errors"

var (
	// ErrRefused is returned for a table whose snapshot a client refused, with its
	// words. The last good snapshot is served.
	ErrRefused = errors.New("a client refused it")
	// ErrInvalid is returned for a configuration that the validators of its messages
	// find wrong, or whose references lead nowhere. It was not served.
	ErrInvalid = errors.New("a configuration that can't be served")
	// ErrStream ends the stream of a client that refuses the good snapshot.
	ErrStream = errors.New("the good configuration was refused")
)
