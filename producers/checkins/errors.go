package checkins

import "errors"

// ErrOption is returned for options that can't be used. Nothing was read.
// Other errors of files are those of the package recording: ErrNothingParses,
// ErrDamaged. Nothing was emitted then.
var ErrOption = errors.New("invalid option of check-ins")
