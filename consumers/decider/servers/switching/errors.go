package switching

import "errors"

// ErrOptions is returned by New for options that cannot be used. The error lists every
// fault with its field; no rule was made.
var ErrOptions = errors.New("switching options")
