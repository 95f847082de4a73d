package serverswitch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"penstock/infra/clock"
	"penstock/infra/folderlock"
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
type Folder struct{ lock *folderlock.Lock }

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
	lock, err := folderlock.Take(folder, lockName, 0o644)
	if errors.Is(err, folderlock.ErrHeld) {
		return nil, fmt.Errorf("%w: %w", ErrInUse, err)
	}
	if err != nil {
		return nil, fmt.Errorf("state folder of the server switch: %w", err)
	}
	return &Folder{lock}, nil
}

// Close gives the folder free.
func (f *Folder) Close() error { return f.lock.Close() }
