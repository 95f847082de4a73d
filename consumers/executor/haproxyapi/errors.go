package haproxyapi

import (
	"errors"
	"fmt"

	"penstock/consumers/executor"
)

var (
	// ErrUnreachable is returned if HAProxy can't be asked, or its answer breaks off. It
	// wraps executor.ErrAgain. What was to be set may have been.
	ErrUnreachable = fmt.Errorf("no way to HAProxy: %w", executor.ErrAgain)
	// ErrRefused is returned for what HAProxy would not do, with its words.
	ErrRefused = errors.New("HAProxy refused")
	// ErrFormat is returned for an answer that this package can't read: of a HAProxy
	// that is too old (before 1.7) or says things in another way. Nothing was set.
	ErrFormat = errors.New("an answer of HAProxy that can't be read")
	// ErrAddress is returned for an address that is none.
	ErrAddress = errors.New("address of HAProxy's runtime API")
)
