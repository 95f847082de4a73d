package stage

import (
	"context"
	"fmt"
	"time"

	"penstock/infra/bus"
	"penstock/infra/clock"
	"penstock/pipeline/report"
	"penstock/schemas/window"
)

// Account waits until all events on the bus are in windows, and reads the account of the
// first group then. Nobody may send events any more. A nil account was not complete before
// the context's end, or could not be read; an error beside an account is what does not add
// up in it.
func Account(ctx context.Context, client *bus.Client) (*window.Account, error) {
	for {
		a, err := report.NewAudit(ctx, client)
		if err != nil {
			return nil, fmt.Errorf("stage: %w", err)
		}
		behind := len(a.Groups) == 0
		for _, g := range a.Groups {
			behind = behind || g.Behind > 0
		}
		if !behind {
			return &a.Groups[0].Total, a.Err()
		}
		if err := clock.System().Sleep(ctx, 200*time.Millisecond); err != nil {
			return nil, fmt.Errorf("stage: the account is not complete: %w", err)
		}
	}
}
