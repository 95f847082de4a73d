package follow

import (
	"errors"

	"penstock/producers/accesslog"
)

var (
	// ErrOption is returned by New for options that cannot be used.
	ErrOption = errors.New("invalid option of a follower")

	// ErrPosition is returned by New for a position that is not this package's,
	// or of a newer version. Nothing was read.
	ErrPosition = errors.New("invalid position of followed files")

	// ErrPart is for parsers to return: the line is a part of a row whose other
	// lines are still to come. The position stays before it until the row is
	// there.
	ErrPart = accesslog.ErrPart

	// ErrNoRow is for parsers to return: the line is well formed and no request,
	// such as a header or a comment. It is counted and nothing else.
	ErrNoRow = accesslog.ErrHeader

	// errIncomplete marks the end of a compressed file that is still written, or
	// damaged.
	errIncomplete = errors.New("the compressed file breaks off")
	// errNotRegular is why folders, sockets and the like are passed over.
	errNotRegular = errors.New("not a regular file")
	// errLong is a line that is longer than MaxLine.
	errLong = errors.New("the line is too long")
)
