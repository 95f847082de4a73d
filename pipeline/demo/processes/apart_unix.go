//go:build unix

package processes

import (
	"os/exec"
	"syscall"
)

// apart puts a process into a session of its own: an interrupt from the terminal
// reaches this process only, which then stops the others in their order.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
