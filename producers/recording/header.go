package recording

import (
	"bytes"
	"strings"
)

// separatorOf tells what separates the fields of a CSV file from its header
// row, the first line of head that isn't blank: commas if it has one outside of
// quotes, else tabs, else semicolons.
func separatorOf(head []byte) byte {
	line, _, _ := bytes.Cut(bytes.TrimLeft(head, "\r\n"), []byte{'\n'})
	var commas, tabs, semicolons int
	quoted := false
	for _, c := range line {
		switch {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == ',':
			commas++
		case c == '\t':
			tabs++
		case c == ';':
			semicolons++
		}
	}
	switch {
	case commas > 0:
		return ','
	case tabs > 0:
		return '\t'
	case semicolons > 0:
		return ';'
	}
	return ','
}

// columnOfHeader returns the column that a header row names, in capitals or
// small letters and with blanks around it or not.
func columnOfHeader(name []byte) (column, bool) {
	c, ok := columnByName[strings.ToLower(string(bytes.TrimSpace(name)))]
	return c, ok
}

// isHeaderRow reports whether the first line names the column time.
func isHeaderRow(head []byte) bool {
	line, _, _ := bytes.Cut(head, []byte{'\n'})
	for name := range bytes.SplitSeq(line, []byte{separatorOf(line)}) {
		if c, ok := columnOfHeader(bytes.Trim(name, " \t\r\"")); ok && c == colTime {
			return true
		}
	}
	return false
}
