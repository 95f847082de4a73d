package serverswitch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"penstock/infra/clock"
)

const (
	lockName = "lock"
	// lockWait is how long a folder may still be held by a process that was killed and is
	// being taken down, and lockLook how often it is tried again.
	lockWait = 2 * time.Second
	lockLook = 50 * time.Millisecond
)

// Folder is a state folder that is this process's until it is closed, or the process ends,
// however it does.
type Folder struct{ lock *os.File }

// Claim makes a folder, if it isn't there, this process's, waiting a moment for one that is
// on its way out. ErrInUse if another process has it, which may be one that stands by; a
// nil clock is the machine's.
func Claim(ctx context.Context, c clock.Clock, folder string) (*Folder, error) {
	if c == nil {
		c = clock.System()
	}
	until := c.Now().Add(lockWait)
	for {
		f, err := claim(folder)
		if !errors.Is(err, ErrInUse) || !c.Now().Before(until) {
			return f, err
		}
		if c.Sleep(ctx, lockLook) != nil {
			return nil, err
		}
	}
}

// claim locks a folder now, or returns ErrInUse.
func claim(folder string) (*Folder, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, fmt.Errorf("state folder of the server switch: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(folder, lockName), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("state folder of the server switch: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w: %w", folder, ErrInUse, err), lock.Close())
	}
	return &Folder{lock}, nil
}

// Close gives the folder free. The lock is taken off by name: a program that is being
// started at this instant has a copy of the descriptor until it runs.
func (f *Folder) Close() error {
	return errors.Join(syscall.Flock(int(f.lock.Fd()), syscall.LOCK_UN), f.lock.Close())
}
