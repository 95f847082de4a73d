package panes

import "errors"

var (
	// ErrSnapshot is returned by Restore when bytes are not a snapshot of an
	// assembler with these options. The assembler is of no use afterwards.
	ErrSnapshot = errors.New("not a snapshot of this assembler")
	// ErrForeign is returned for a pane or commit of another group, of a
	// partition that does not exist, of windows of another width, or of an
	// unknown schema. The assembler is
	// unchanged.
	ErrForeign = errors.New("not a message of this group")
)
