package aggregator

import (
	"context"
	"strconv"
	"strings"

	"penstock/infra/bus"
	"penstock/schemas/reject"
	"penstock/schemas/subject"
	"penstock/schemas/window"
)

// Reasons of rejects, a token of their subjects.
const (
	reasonHeaders     = "headers"
	reasonUndecodable = "undecodable"
	reasonRetired     = "retired"
)

// parkTries is how often a reject is sent before it is only counted.
const parkTries = 5

// park sends a message that cannot be used, with why and where it stood, at
// most reject.Samples of a run. It was booked before. The id makes a message
// that is read again, or by several partitions, one reject; a commit that covers
// it follows within a second, long before the server forgets the id.
func (w *worker) park(ctx context.Context, m *bus.Msg, run, reason string, why error) error {
	w.count(Rejected, 1)
	if !w.book.Park(run, reject.Samples) {
		w.count(Unsampled, 1)
		return nil
	}
	if w.opts.Group != window.Groups[0] {
		return nil // the first group's aggregator parks it
	}
	entry, _, err := subject.Entry(m.Subject)
	if err != nil {
		entry = m.Subject
	}
	field, expected := reject.Explain(why, "a batch that can be decoded")
	h := map[string][]string{}
	for k, v := range m.Header {
		if strings.HasPrefix(k, "Penstock-") {
			h[k] = v
		}
	}
	seq := strconv.FormatUint(m.Seq, 10)
	h[reject.HeaderReason], h[reject.HeaderEventsSeq] = []string{reason}, []string{seq}
	h[reject.HeaderField], h[reject.HeaderExpected] = []string{field}, []string{expected}
	h[reject.HeaderError] = []string{reject.Text(why.Error())}
	out := bus.Msg{Subject: subject.Rejects(reason, entry), Header: h, Data: m.Data}
	id := bus.MsgID("events-" + seq)
	w.log.Warn().Err(why).Uint64("events_seq", m.Seq).Str("reason", reason).Str("entry", entry).Msg("message to REJECTS")
	for n, wait := 1, retryLeast; ; n, wait = n+1, min(2*wait, retryMost) {
		_, err := w.opts.Client.Publish(ctx, out, id)
		if err == nil {
			w.parked = true
			return nil
		}
		if n == parkTries {
			w.count(Unparked, 1)
			w.log.Error().Err(err).Uint64("events_seq", m.Seq).Msg("REJECTS does not take the message: only counted")
			return nil
		}
		if err := w.again(ctx, err, "cannot send to REJECTS", wait); err != nil {
			return err
		}
	}
}
