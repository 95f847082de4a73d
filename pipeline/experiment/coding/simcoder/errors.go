package simcoder

import "errors"

// ErrOptions is returned by Run for options that make no run. The error says which;
// nothing was run.
var ErrOptions = errors.New("options of a simulated coder")
