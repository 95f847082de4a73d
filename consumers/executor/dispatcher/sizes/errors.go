package sizes

import "errors"

// ErrOptions is wrapped by what New returns for options that can't work. Nothing was made.
var ErrOptions = errors.New("sizes options")
