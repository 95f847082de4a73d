package otlp

import "errors"

var (
	// ErrOptions is returned by New for options that can't be used. Nothing listens.
	ErrOptions = errors.New("invalid options of the OTLP receiver")
	// errBusy is why a request was not taken: it may be sent again.
	errBusy = errors.New("no room for more spans, try again")
	// errClosing is the same at the end.
	errClosing = errors.New("the receiver is closing, try again elsewhere")
	// errLarge is a body beyond Options.MaxBody.
	errLarge = errors.New("request is too large")
)
