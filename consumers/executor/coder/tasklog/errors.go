package tasklog

import "errors"

// ErrOptions is returned by New for options without a coder, a site, or somewhere to
// publish. Nothing was made.
var ErrOptions = errors.New("options of a coder's log")
