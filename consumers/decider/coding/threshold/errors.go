package threshold

import "errors"

// ErrInvalid is returned by Validate, Uncorrected and Corrected for a model or limits
// that no thresholds follow from. The error names the field; nothing was computed.
var ErrInvalid = errors.New("thresholds of a code")
