package reorder

import "errors"

// ErrTooMany is returned when more rows wait inside the disorder than the limit
// of the buffer allows. Nothing was dropped; the run cannot go on.
var ErrTooMany = errors.New("too many rows wait to be put in order")
