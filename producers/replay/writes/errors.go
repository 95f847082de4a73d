package writes

import "errors"

var (
	// ErrUnreachable is returned by Flush when a copy says that its data went
	// to a site which isn't configured, or sends the writer in a circle, or that it
	// is on its way and does not arrive within a minute. The window is written in part and not marked.
	ErrUnreachable = errors.New("the owner's data cannot be found")
	// ErrMarker is returned by Open when written.json is there and cannot be
	// read. Nothing was changed.
	ErrMarker = errors.New("unreadable marker of what was written")
)
