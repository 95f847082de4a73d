package pull

import "errors"

// ErrOptions is returned by New for options that can't be used. Nothing was bound.
var ErrOptions = errors.New("unusable options of the pull API")
