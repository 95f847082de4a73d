// Package folderlock gives a folder to one process at a time, by a lock on a file in it.
//
// States: a [Lock] is held from [Take] until Close, or until the process ends, however it
// does. Failures: [ErrHeld] if another has it, or another part of this process; nothing was
// waited for, and nothing is held then.
package folderlock

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// ErrHeld is wrapped by Take's error when somebody else has the folder. Nothing is held.
var ErrHeld = errors.New("the folder is another's")

// Lock is a folder that is held.
type Lock struct{ file *os.File }

// Take locks the file of that name in a folder, and makes the file, with a mode, if it isn't
// there.
func Take(folder, name string, mode os.FileMode) (*Lock, error) {
	f, err := os.OpenFile(filepath.Join(folder, name), os.O_RDWR|os.O_CREATE, mode)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w: %w", folder, ErrHeld, err), f.Close())
	}
	return &Lock{f}, nil
}

// Close gives the folder free. The lock is taken off by name: a program that is being
// started at this instant has a copy of the descriptor until it runs.
func (l *Lock) Close() error {
	return errors.Join(syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN), l.file.Close())
}
