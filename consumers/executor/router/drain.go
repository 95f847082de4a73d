package router

import (
	"context"
	"fmt"
	"time"

	"penstock/infra/clock"
	"penstock/infra/shares"
)

// drainLook is how often Emptied asks whether requests are still running.
const drainLook = 20 * time.Millisecond

// Emptied waits until no request runs at a replica that gets no new ones, as running
// says. When ctx ends before, their number is returned with shares.ErrRemaining; −1
// with it if running is nil: nobody knows.
func Emptied(ctx context.Context, c clock.Clock, r shares.Replica, running func(ctx context.Context, r shares.Replica) (int, error)) (remaining int, err error) {
	if running == nil {
		return -1, fmt.Errorf("nobody tells what runs at %.80q of %.80q: %w", r.Site, r.Component, shares.ErrRemaining)
	}
	for {
		n, err := running(context.WithoutCancel(ctx), r)
		if err != nil || n == 0 {
			return n, err
		}
		if c.Sleep(ctx, drainLook) != nil {
			return n, fmt.Errorf("%d at %.80q of %.80q: %w", n, r.Site, r.Component, shares.ErrRemaining)
		}
	}
}

// Without takes the shares of sites that are away from those of a row, unless nobody
// would be left (PROBLEMS P31). The shares that it is given stay.
func Without(split map[string]float64, away func(site string) bool) map[string]float64 {
	left, sum := make(map[string]float64, len(split)), 0.0
	for site, share := range split {
		left[site] = 0
		if !away(site) {
			left[site] = share
			sum += share
		}
	}
	if sum == 0 {
		return split
	}
	return left
}
