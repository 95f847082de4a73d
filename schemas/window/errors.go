package window

import "errors"

// ErrUndecodable is returned when bytes are not a pane or a commit of a known
// schema. Nothing of the input was used.
var ErrUndecodable = errors.New("undecodable pane or commit")
