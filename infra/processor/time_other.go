//go:build !linux

package processor

import "time"

// Time: only Linux shows another process's.
func Time(int) (time.Duration, error) { return 0, ErrUnknown }

// Own: as Time.
func Own(int) (time.Duration, error) { return 0, ErrUnknown }

// Machine: as Time.
func Machine() (time.Duration, error) { return 0, ErrUnknown }
