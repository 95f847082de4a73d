//go:build !linux

package command

import "syscall"

// endWithUs does nothing: the system can't end a program with its parent.
func endWithUs(*syscall.SysProcAttr) {}
