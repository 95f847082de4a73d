package command

import "syscall"

// endWithUs has a program killed when this process is, so that it doesn't go on beside
// the one that is called after the next start. The thread that starts it has to stay.
func endWithUs(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }
