package window

import (
	"fmt"
	"strconv"
	"strings"
)

// HeaderPanes stands on the commit of a flush that is one plain message: the
// lengths in bytes of its panes, comma separated. The body then holds the panes
// one behind the other and the commit's JSON behind them. A server stages an
// atomic batch in a folder of its own, which costs milliseconds; a small flush
// need not be one.
const HeaderPanes = "Penstock-Panes"

// Join returns the body of a flush that is one message, and its HeaderPanes.
func Join(panes [][]byte, commit []byte) (body []byte, lengths string) {
	var l strings.Builder
	for i, p := range panes {
		if i > 0 {
			l.WriteByte(',')
		}
		l.WriteString(strconv.Itoa(len(p)))
		body = append(body, p...)
	}
	return append(body, commit...), l.String()
}

// Part returns the panes and the commit in the body of a commit message, whose
// HeaderPanes is "" if it holds the commit alone. The slices share its memory.
func Part(lengths string, body []byte) (panes [][]byte, commit []byte, err error) {
	if lengths == "" {
		return nil, body, nil
	}
	for f := range strings.SplitSeq(lengths, ",") {
		n, err := strconv.ParseUint(f, 10, 31)
		if err != nil || n > uint64(len(body)) {
			return nil, nil, fmt.Errorf("header %s: got %.40q over %d bytes that are left, expected the lengths of the panes: %w", HeaderPanes, lengths, len(body), ErrUndecodable)
		}
		panes, body = append(panes, body[:n:n]), body[n:]
	}
	return panes, body, nil
}
