package replay

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"penstock/infra/bus"
	"penstock/schemas/event"
	"penstock/schemas/subject"
)

// Headers of a sample on REJECTS (DESIGN §3.4).
const (
	headerReason   = "Penstock-Reason"
	headerField    = "Penstock-Field"
	headerExpected = "Penstock-Expected"
	headerFile     = "Penstock-File"
	headerLine     = "Penstock-Line"
)

// maxSamples is how many malformed lines of a run are kept; the account holds
// the number of all.
const maxSamples = 1000

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
	if r.seen >= maxSamples {
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
			event.HeaderRun: {r.run}, headerReason: {"malformed"}, headerField: {printable(b.Field)},
			headerExpected: {printable(b.Expected)}, headerFile: {printable(b.File)}, headerLine: {line},
		},
	}
	if _, err := r.client.Publish(ctx, m, bus.MsgID(r.run+"/"+strconv.FormatInt(r.seen, 10))); err != nil {
		return fmt.Errorf("reject: %w", err)
	}
	return nil
}

// printable makes a text fit for a header.
func printable(s string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return '?'
		}
		return c
	}, s)
}
