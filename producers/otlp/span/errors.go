package span

import "errors"

var (
	// ErrMalformed is wrapped by what Check and the parsers of ids return: the
	// span can't be used, and no call comes of it.
	ErrMalformed = errors.New("malformed span")
	// ErrRule is returned for a rule that can't be compiled. There is no Mapper.
	ErrRule = errors.New("invalid rule for attributes of spans")
)
