package replay

import (
	"context"
	"fmt"
	"strconv"

	"penstock/infra/bus"
	"penstock/schemas/event"
	"penstock/schemas/reject"
	"penstock/schemas/subject"
)

// rejects parks samples of malformed lines on REJECTS.
type rejects struct {
	client *bus.Client
	entry  string
	run    string
	skip   int64 // samples that an earlier attempt has parked
	seen   int64
}

// sample parks the line if it is among the first of the run. A repeat after a
// crash is dropped by the server as long as it remembers the line's id.
func (r *rejects) sample(ctx context.Context, b *Bad) error {
	if r.seen >= reject.Samples {
		return nil
	}
	r.seen++
	if r.seen <= r.skip {
		return nil
	}
	line := strconv.FormatInt(b.Line, 10)
	m := bus.Msg{
		Subject: subject.Rejects("malformed", r.entry), Data: b.Raw,
		Header: map[string][]string{
			event.HeaderRun: {r.run}, reject.HeaderReason: {"malformed"}, reject.HeaderField: {reject.Text(b.Field)},
			reject.HeaderExpected: {reject.Text(b.Expected)}, reject.HeaderFile: {reject.Text(b.File)}, reject.HeaderLine: {line},
		},
	}
	if _, err := r.client.Publish(ctx, m, bus.MsgID(r.run+"/"+strconv.FormatInt(r.seen, 10))); err != nil {
		return fmt.Errorf("reject: %w", err)
	}
	return nil
}
