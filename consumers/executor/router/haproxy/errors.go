package haproxy

import (
	"errors"

	"penstock/consumers/executor/haproxyapi"
)

var (
	// ErrRefused is returned for what HAProxy would not do, with its words. The
	// weights of before were set back.
	ErrRefused = haproxyapi.ErrRefused
	// ErrFormat is returned for an answer that this package can't read: of a HAProxy
	// that is too old (before 1.7) or says things in another way. Nothing was set.
	ErrFormat = haproxyapi.ErrFormat
	// ErrWrites is returned for a row whose writes have a site of their own while
	// the link's backends don't tell writes apart. The weights stay.
	ErrWrites = errors.New("no backend of their own for writes")
)
