package delays

import "errors"

// ErrLaw is returned by Law.Validate for numbers that make no delay. The error names
// the field; nothing was drawn.
var ErrLaw = errors.New("law of delays")
