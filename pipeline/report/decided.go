package report

import (
	"context"
	"fmt"

	"penstock/consumers/decider"
	"penstock/infra/bus"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// eachDecided calls decided for each decision of a kind that a bus holds, and then
// commanded for each of its commands, in their order.
func eachDecided(ctx context.Context, client *bus.Client, kind control.Kind, decided func(*control.Decision), commanded func(*control.Command)) error {
	each := func(subjects string, take func(m bus.Msg) error) error {
		return client.Each(ctx, subject.CommandsStream, []string{subjects}, 0, take)
	}
	err := each(subject.Decisions(string(kind)), func(m bus.Msg) error {
		part, _, err := decider.Part(m.Header)
		if err != nil || part > 1 {
			return err
		}
		d, err := control.DecodeDecision(m.Data)
		if err == nil {
			decided(d)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("report of %s: decisions: %w", kind, err)
	}
	err = each(subject.CommandsOf(string(kind)), func(m bus.Msg) error {
		c, err := control.DecodeCommandOf(kind, m.Data)
		if err == nil {
			commanded(c)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("report of %s: tables: %w", kind, err)
	}
	return nil
}
