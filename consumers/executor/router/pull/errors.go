package pull

import "errors"

var (
	// ErrOptions is returned by New for options that can't be used. Nothing was
	// bound.
	ErrOptions = errors.New("unusable options of the pull API")
	// ErrClosed is returned by Run of a server that was closed or has run.
	ErrClosed = errors.New("the pull API is closed")
)
