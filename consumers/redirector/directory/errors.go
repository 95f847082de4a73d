package directory

import "errors"

var (
	// ErrOptions is returned by New for options that can't be used. Nothing was
	// made.
	ErrOptions = errors.New("unusable options of a directory")
	// ErrRunning is returned by Run of a directory that runs or has run. Nothing
	// was changed.
	ErrRunning = errors.New("the directory runs or has run")
	// ErrSnapshot is wrapped by what says that a snapshot can't be used: it is
	// damaged, cut off, or of another version. The file is left as it is until the
	// next one replaces it.
	ErrSnapshot = errors.New("not a usable snapshot of a directory")

	// Why the following of the bus ended and begins again.
	errLost        = errors.New("the connection was lost")
	errReconnected = errors.New("the connection was made anew")
	errReset       = errors.New("the bucket was made anew or set back")
	errPurged      = errors.New("the bus holds fewer keys than were seen")
	errMissed      = errors.New("the bus holds more keys than were seen")
	errEnded       = errors.New("the reader was closed")
)
