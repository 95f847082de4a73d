package event

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"penstock/schemas/columnar"
	"penstock/schemas/object"
	"penstock/schemas/scalar"
)

// lineReader reads bodies of JSON Lines (EncodingJSONL): an object a row, its
// names the columns, its values in the forms that recordings have (DESIGN §3.1).
// It keeps its memory from one batch to the next.
type lineReader struct {
	walk  object.Walker
	row   Request
	texts [numColumns][]byte // of the row at hand; nil is absent
	kept  []byte             // their bytes, where they were escaped
	order []Column           // of the names on the last line, −1 for unknown ones
}

// notNull are the columns that a row must have. A mark that is missing is 0.
var notNull = [...]Column{colTime, colOp, colBytes}

// read appends the rows of a body to b. All columns are checked, also those that
// are skipped, so that a batch is good for everybody or for nobody.
func (l *lineReader) read(b *Requests, body []byte, skip *[numColumns]bool) error {
	if len(body) > MaxDecoded {
		return fmt.Errorf("body of %d bytes, expected at most %d: %w", len(body), MaxDecoded, ErrUndecodable)
	}
	for len(body) > 0 {
		var line []byte
		line, body, _ = bytes.Cut(body, []byte{'\n'})
		if line = bytes.Trim(line, " \t\r"); len(line) == 0 {
			continue
		}
		if b.Len() == MaxRows {
			return fmt.Errorf("more than %d rows, expected at most %d: %w", MaxRows, MaxRows, columnar.ErrColumn)
		}
		if line[0] != '{' || !json.Valid(line) {
			return fmt.Errorf("row %d: got %.60q, expected a JSON object on one line: %w", b.Len(), line, columnar.ErrColumn)
		}
		if err := l.object(line, b.Len()); err != nil {
			return err
		}
		l.append(b, skip)
	}
	return nil
}

// object reads one row.
func (l *lineReader) object(line []byte, row int) error {
	l.row, l.kept = NewRequest(0), l.kept[:0]
	clear(l.texts[:])
	var seen uint32
	l.walk.Begin(line)
	for n := 0; ; n++ {
		name, value, ok := l.walk.Next()
		if !ok {
			break
		}
		c := l.column(n, name)
		if c < 0 {
			continue
		}
		set, err := l.member(c, value, row)
		if err != nil {
			return err
		}
		if set {
			seen |= 1 << c
		}
	}
	for _, c := range notNull {
		if seen&(1<<c) == 0 {
			return fmt.Errorf("column %s: row %d: missing, expected %s: %w", c, row, c.Expected(), columnar.ErrColumn)
		}
	}
	return nil
}

// column returns the column of the n-th name on a line, −1 for a name that is
// none. Most lines have their names in the same order as the line before.
func (l *lineReader) column(n int, name []byte) Column {
	if n < len(l.order) {
		if c := l.order[n]; c >= 0 && requestFields[c].Name == string(name) {
			return c
		}
	}
	c, ok := columnByName[string(name)]
	if !ok {
		c = -1
	}
	switch {
	case n < len(l.order):
		l.order[n] = c
	case n == len(l.order) && n < numColumns:
		l.order = append(l.order, c)
	}
	return c
}

// member sets one column of the row. Of a name that stands twice the last value
// holds. It reports whether there was a value.
func (l *lineReader) member(c Column, value []byte, row int) (bool, error) {
	text := value
	switch value[0] {
	case '"':
		text = l.walk.Text(value)
	case '{', '[', 't', 'f':
		return false, lineError(c, row, value, c.Expected())
	}
	if scalar.IsMissing(text) {
		return false, nil
	}
	if !c.isText() {
		if !l.row.Set(c, text) {
			return false, lineError(c, row, text, c.Expected())
		}
		return true, nil
	}
	if len(text) > MaxID {
		return false, fmt.Errorf("column %s: row %d has %d bytes, expected at most %d: %w", c, row, len(text), MaxID, columnar.ErrColumn)
	}
	if !utf8.Valid(text) {
		return false, lineError(c, row, text, "UTF-8")
	}
	// What was escaped lives in the walker only until the next one.
	from := len(l.kept)
	l.kept = append(l.kept, text...)
	l.texts[c] = l.kept[from:len(l.kept):len(l.kept)]
	return true, nil
}

func lineError(c Column, row int, got []byte, expected string) error {
	return fmt.Errorf("column %s: row %d: got %.60q, expected %s: %w", c, row, got, expected, columnar.ErrColumn)
}

// append adds the row to the columns. Those that are skipped get nothing.
func (l *lineReader) append(b *Requests, skip *[numColumns]bool) {
	b.appendFixed(&l.row)
	for _, i := range dictColumns {
		if !skip[i] {
			b.size += b.dict(i).addBytes(l.texts[i])
		}
	}
}
