package columnar

import (
	"encoding/binary"
	"fmt"
)

// Limits on what Check lets pass. They are wider than the Reader's: a
// stranger's recording may have many columns of its own.
const (
	checkItems = 1 << 16 // fields and pairs of metadata, shared ones each time
	checkDepth = 32
	checkText  = 16 << 20 // bytes of names and metadata, shared ones each time
)

// Check reads the metadata of one message for a reader that trusts what it
// says, as Arrow's own does: the lengths that it would take memory for, the
// nesting that it would follow, and where the buffers lie in the body. It
// returns the length of the body. The error wraps ErrCorrupt.
func Check(meta []byte) (body int64, err error) {
	defer guard(&err)
	t := root(meta[:len(meta):len(meta)])
	if body = t.int64(3); body < 0 || t.odd() {
		return 0, fmt.Errorf("body of %d bytes: %w", body, ErrCorrupt)
	}
	header, ok := t.table(2)
	if !ok || header.odd() {
		return 0, fmt.Errorf("message without header: %w", ErrCorrupt)
	}
	switch t.byte(1) {
	case headerSchema:
		c := checker{items: checkItems, text: checkText}
		return body, c.schema(header)
	case headerDict:
		if header, ok = header.table(1); !ok || header.odd() {
			return 0, fmt.Errorf("dictionary without values: %w", ErrCorrupt)
		}
		return body, checkParts(header, body)
	case headerBatch:
		return body, checkParts(header, body)
	}
	return 0, fmt.Errorf("message of kind %d: %w", t.byte(1), ErrCorrupt)
}

// CheckBody says whether a compressed buffer of a message that Check let pass
// claims to unpack to more than most bytes. The error wraps ErrCorrupt.
func CheckBody(meta, body []byte, most int64) (err error) {
	defer guard(&err)
	t := root(meta)
	header, _ := t.table(2)
	switch t.byte(1) {
	case headerDict:
		header, _ = header.table(1)
	case headerBatch:
	default:
		return nil
	}
	if _, compressed := header.table(3); !compressed {
		return nil
	}
	for first, n := header.vector(2, 16); n > 0; first, n = first+16, n-1 {
		off := int64(binary.LittleEndian.Uint64(t.b[first:]))
		size := int64(binary.LittleEndian.Uint64(t.b[first+8:]))
		if size == 0 {
			continue
		}
		// The length before compression comes first; −1 is none was done.
		if plain := int64(binary.LittleEndian.Uint64(body[off : off+size])); plain < -1 || plain > most {
			return fmt.Errorf("a buffer of %d bytes, at most %d: %w", plain, most, ErrCorrupt)
		}
	}
	return nil
}

// odd says that a table's list of fields ends in the middle of one, of which
// one reader sees a field and another none.
func (t table) odd() bool {
	v := t.pos - int(int32(binary.LittleEndian.Uint32(t.b[t.pos:])))
	return binary.LittleEndian.Uint16(t.b[v:])%2 != 0
}

// checkParts checks the nodes and buffers of a record batch.
func checkParts(t table, body int64) error {
	for first, n := t.vector(1, 16); n > 0; first, n = first+16, n-1 {
		rows := int64(binary.LittleEndian.Uint64(t.b[first:]))
		nulls := int64(binary.LittleEndian.Uint64(t.b[first+8:]))
		if rows < 0 || rows > 1<<31-2 || nulls < 0 || nulls > rows {
			return fmt.Errorf("a column of %d rows with %d absent: %w", rows, nulls, ErrCorrupt)
		}
	}
	for first, n := t.vector(2, 16); n > 0; first, n = first+16, n-1 {
		off := int64(binary.LittleEndian.Uint64(t.b[first:]))
		size := int64(binary.LittleEndian.Uint64(t.b[first+8:]))
		if off < 0 || size < 0 || off > body || size > body-off {
			return fmt.Errorf("a buffer lies outside of the body: %w", ErrCorrupt)
		}
	}
	t.vector(4, 8)
	return nil
}

// checker counts down what a schema may hold.
type checker struct{ items, text int }

func (c *checker) schema(t table) error {
	first, n := t.vector(1, 4)
	for i := range n {
		if err := c.field(t.tableAt(first, i), checkDepth); err != nil {
			return err
		}
	}
	return c.metadata(t, 2)
}

func (c *checker) field(t table, depth int) error {
	if c.items--; c.items < 0 || depth == 0 || t.odd() {
		return fmt.Errorf("more than %d columns or nested deeper than %d: %w", checkItems, checkDepth, ErrCorrupt)
	}
	if err := c.name(t, 0); err != nil {
		return err
	}
	first, n := t.vector(5, 4)
	for i := range n {
		if err := c.field(t.tableAt(first, i), depth-1); err != nil {
			return err
		}
	}
	return c.metadata(t, 6)
}

func (c *checker) metadata(t table, field int) error {
	first, n := t.vector(field, 4)
	for i := range n {
		if c.items--; c.items < 0 {
			return fmt.Errorf("more than %d pairs of metadata: %w", checkItems, ErrCorrupt)
		}
		pair := t.tableAt(first, i)
		if pair.odd() {
			return fmt.Errorf("a pair of metadata is no table: %w", ErrCorrupt)
		}
		for part := range 2 {
			if err := c.name(pair, part); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *checker) name(t table, field int) error {
	_, n := t.vector(field, 1)
	if c.text -= n; c.text < 0 {
		return fmt.Errorf("names and metadata of more than %d bytes: %w", checkText, ErrCorrupt)
	}
	return nil
}
