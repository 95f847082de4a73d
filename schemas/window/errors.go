package window

import "errors"

// ErrUndecodable is returned when bytes are not a pane or a commit of a known
// schema. Nothing of the input was used.
var ErrUndecodable = errors.New("undecodable pane or commit")

// ErrWidth is returned for a width that windows cannot have. Nothing was done.
var ErrWidth = errors.New("impossible width of windows")
