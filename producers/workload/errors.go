package workload

import "errors"

// ErrParams is returned for parameters from which no day can be made: a file
// that isn't YAML, an unknown field, a value out of its range, or a scaling
// that no number of writes can reach. Nothing was generated.
var ErrParams = errors.New("parameters of the workload")
