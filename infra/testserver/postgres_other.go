//go:build !unix

package testserver

import "os/exec"

// account is the user that a server runs as: our own.
type account struct{}

func unprivileged() (account, error) { return account{}, nil }

func (account) give(string) error { return nil }

func (account) run(*exec.Cmd) {}
