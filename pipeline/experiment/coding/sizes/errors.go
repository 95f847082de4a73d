package sizes

import "errors"

// ErrFile is returned where no sizes can be read: there is no file, it has no lines,
// or a line has no size. The error names the line; nothing was kept.
var ErrFile = errors.New("file of sizes")
