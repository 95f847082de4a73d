package claims

import "errors"

var (
	// ErrOptions is wrapped by what New, SetServers and NewViewer return for options that
	// can't work. Nothing was changed.
	ErrOptions = errors.New("claims options")
	// errConflict is a write that another came before. Nothing was written.
	errConflict = errors.New("another write came first")
	// errBook is content of the key that no dispatcher wrote; it is written over.
	errBook = errors.New("not a book of claims")
)
