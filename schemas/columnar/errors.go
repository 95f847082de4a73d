package columnar

import "errors"

var (
	// ErrCorrupt is returned when bytes are not an Arrow IPC stream of one
	// record batch, or use what is not read here (body compression, delta
	// dictionaries, big-endian numbers). Nothing of the input was used.
	ErrCorrupt = errors.New("not an Arrow stream of one batch")

	// ErrColumn is returned when a column has not the type, the length or the
	// values that it must have. Nothing of the input was used.
	ErrColumn = errors.New("unusable column")
)
