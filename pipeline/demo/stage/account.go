package stage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"penstock/infra/bus"
	"penstock/infra/clock"
	"penstock/pipeline/report"
	"penstock/schemas/event"
	"penstock/schemas/subject"
	"penstock/schemas/window"
)

// Account waits until all events on the bus are in windows, and reads the account of the
// first group then. Nobody may send events any more. A nil account was not complete before
// the context's end, or could not be read; an error beside an account is what does not add
// up in it: ErrAccount if it is of another number of rows than were sent. Those that came
// too late for their window are accounted for as others are.
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
			return against(ctx, client, a)
		}
		if err := clock.System().Sleep(ctx, 200*time.Millisecond); err != nil {
			return nil, fmt.Errorf("stage: the account is not complete: %w", err)
		}
	}
}

// against compares an account with what the bus has.
func against(ctx context.Context, client *bus.Client, a *report.Audit) (*window.Account, error) {
	rows, err := sent(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("stage: %w", err)
	}
	total := &a.Groups[0].Total
	if total.Received != rows {
		err = fmt.Errorf("%d rows were sent, the account has %d: %w", rows, total.Received, ErrAccount)
	}
	return total, errors.Join(a.Err(), err)
}

// sent counts the rows of the batches on the bus by their headers, and the lines that
// publishers could not read.
func sent(ctx context.Context, client *bus.Client) (rows int64, err error) {
	err = client.Each(ctx, subject.EventsStream, []string{"events.>"}, 0, func(m bus.Msg) error {
		if event.IsMark(m.Header) {
			return nil
		}
		h, err := event.ParseHeader(m.Header)
		if err == nil {
			rows += int64(h.Rows) + h.Malformed
		}
		return err
	})
	return rows, err
}
