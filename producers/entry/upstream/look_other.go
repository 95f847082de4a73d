//go:build !unix

package upstream

import "syscall"

// look can't look at a socket here: that a connection is closed is seen when it
// is used, as a reset before the answer.
type look struct{}

type looked struct {
	n, wrote int
	dead     bool
	err      error
}

func (*look) init(syscall.Conn) {}

func (*look) exchanges([]byte) bool { return false }

func (*look) exchange([]byte, []byte, *conn) looked { return looked{} }

func (*look) quiet() bool { return true }
