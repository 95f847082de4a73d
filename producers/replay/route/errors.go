package route

import "errors"

// ErrSite is returned for an import that names a site which isn't configured,
// or for a table without sites. There is no table.
var ErrSite = errors.New("no such site")
