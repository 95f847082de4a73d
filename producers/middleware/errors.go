package middleware

import "errors"

// ErrOptions is returned by Open for options that are missing or do not go
// together. Nothing was opened.
var ErrOptions = errors.New("invalid options of the recorder")
