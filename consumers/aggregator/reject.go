package aggregator

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"penstock/infra/bus"
	"penstock/schemas/event"
	"penstock/schemas/subject"
	"penstock/schemas/window"
)

// Reasons of rejects, a token of their subjects.
const (
	reasonHeaders     = "headers"
	reasonUndecodable = "undecodable"
	reasonRetired     = "retired"
)

// Headers of a reject (DESIGN §3.4), beside the original's own of Penstock.
const (
	headerReason    = "Penstock-Reason"
	headerField     = "Penstock-Field"
	headerExpected  = "Penstock-Expected"
	headerError     = "Penstock-Error"
	headerEventsSeq = "Penstock-Events-Seq"
)

// parkTries is how often a reject is sent before it is only counted.
const parkTries = 5

// reject parks a message that cannot be used, with why and where it stood, at
// most SampledRejects of a run. It was booked before. The id makes a message
// that is read again, or by several partitions, one reject; a commit that covers
// it follows within a second, long before the server forgets the id.
func (w *worker) reject(ctx context.Context, m *bus.Msg, run, reason string, why error) error {
	w.count(Rejected, 1)
	if !w.book.Park(run, SampledRejects) {
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
	field, expected := explained(why)
	h := map[string][]string{}
	for k, v := range m.Header {
		if strings.HasPrefix(k, "Penstock-") {
			h[k] = v
		}
	}
	h[headerReason], h[headerEventsSeq] = []string{reason}, []string{strconv.FormatUint(m.Seq, 10)}
	h[headerField], h[headerExpected], h[headerError] = []string{field}, []string{expected}, []string{oneLine(why.Error())}
	out := bus.Msg{Subject: subject.Rejects(reason, entry), Header: h, Data: m.Data}
	id := bus.MsgID("events-" + strconv.FormatUint(m.Seq, 10))
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

// explained takes the field and what was expected there out of an error of the
// decoders: "header NAME: got …, expected …: …", "column NAME: …".
func explained(err error) (field, expected string) {
	text := strings.TrimSuffix(oneLine(err.Error()), ": "+event.ErrUndecodable.Error())
	head, rest, _ := strings.Cut(text, ": ")
	if kind, name, ok := strings.Cut(head, " "); ok && (kind == "header" || kind == "column" || kind == "field") {
		field = name
	} else {
		field, rest = "body", text
	}
	if _, e, ok := strings.Cut(rest, "expected "); ok {
		expected, _, _ = strings.Cut(e, ": ")
	} else {
		expected = "a batch that can be decoded"
	}
	return field, expected
}

// oneLine makes a text fit for a header.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
	return fmt.Sprintf("%.500s", s)
}
