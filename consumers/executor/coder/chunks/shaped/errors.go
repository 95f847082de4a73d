package shaped

import "errors"

// ErrInjected is returned by calls that fail because they were told to. The store below
// wasn't asked.
var ErrInjected = errors.New("a fault was asked for")
