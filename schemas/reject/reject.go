// Package reject names what stands beside the original bytes of a message on
// REJECTS: why it could not be used, where it stood, which field was wrong and
// what was expected there (DESIGN §3, §3.4).
//
// It has no state and no failures. REJECTS holds samples, the account holds the
// numbers.
package reject

import (
	"fmt"
	"strings"
)

// Headers of a reject. A message of EVENTS stands at its sequence there and keeps
// its own headers of Penstock, a command at its subject and sequence of COMMANDS,
// a line of a recording at its file and number.
const (
	HeaderReason      = "Penstock-Reason"
	HeaderField       = "Penstock-Field"
	HeaderExpected    = "Penstock-Expected"
	HeaderError       = "Penstock-Error" // the whole error, with what was there instead
	HeaderEventsSeq   = "Penstock-Events-Seq"
	HeaderCommandsSeq = "Penstock-Commands-Seq"
	HeaderSubject     = "Penstock-Subject"
	HeaderFile        = "Penstock-File"
	HeaderLine        = "Penstock-Line"
)

// Samples is how many messages of one run go to REJECTS; all are in the account.
const Samples = 1000

// maxText is the greatest length of a header's text, in characters.
const maxText = 500

// Explain takes the field and what was expected there out of an error of the
// decoders in schemas: "header NAME: got …, expected …: …", "column NAME: …", or
// "command: field NAME: …". Where the error names none, the field is the body as a
// whole. Both are fit for a header.
func Explain(err error, whole string) (field, expected string) {
	field, expected = "body", whole
	text := err.Error()
	for rest := text; rest != ""; {
		var head string
		head, rest, _ = strings.Cut(rest, ": ")
		if kind, name, ok := strings.Cut(head, " "); ok && (kind == "header" || kind == "column" || kind == "field") {
			field, text = name, rest
			break
		}
	}
	if _, e, ok := strings.Cut(text, ", expected "); ok {
		expected, _, _ = strings.Cut(e, ": ")
	}
	return Text(field), Text(expected)
}

// Text makes a text fit for a header: one line, and not without end.
func Text(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
	return fmt.Sprintf("%.*s", maxText, s)
}
