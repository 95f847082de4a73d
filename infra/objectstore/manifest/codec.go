package manifest

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
)

// A document is
//
//	magic "PSM1" | header length uvarint | header, JSON | objects | CRC-32C uint32
//
// with the number of objects as a uvarint before them, and for each, ascending by
// name: bytes shared with the name before, rest of the name, blob id, size,
// flags, SHA-256 if known, version if it isn't the blob's id. Numbers are
// uvarints, strings have their length before them, the checksum is little endian
// and over all that stands before it.
const magic = "PSM1"

const (
	hasSum     = 1
	hasVersion = 2
)

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	errDamaged = errors.New("damaged document")
)

func (d *document) encode() ([]byte, error) {
	h, err := json.Marshal(&d.header)
	if err != nil {
		return nil, fmt.Errorf("encode document: %w", err)
	}
	b := make([]byte, 0, len(h)+64+80*len(d.entries))
	b = append(b, magic...)
	b = appendString(b, string(h))
	b = binary.AppendUvarint(b, uint64(len(d.entries)))
	last := ""
	for i := range d.entries {
		e := &d.entries[i]
		n := shared(last, e.name)
		b = binary.AppendUvarint(b, uint64(n))
		b = appendString(b, e.name[n:])
		b = appendString(b, e.blob)
		b = binary.AppendUvarint(b, uint64(e.size))
		var flags byte
		if e.sum != ([32]byte{}) {
			flags |= hasSum
		}
		if e.version != "" {
			flags |= hasVersion
		}
		b = append(b, flags)
		if flags&hasSum != 0 {
			b = append(b, e.sum[:]...)
		}
		if flags&hasVersion != 0 {
			b = appendString(b, e.version)
		}
		last = e.name
	}
	return seal(b), nil
}

// seal appends the checksum.
func seal(b []byte) []byte {
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func shared(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func decode(b []byte) (*document, error) {
	if len(b) < len(magic)+4 || string(b[:len(magic)]) != magic {
		return nil, fmt.Errorf("%w: not one of ours", errDamaged)
	}
	body := b[:len(b)-4]
	if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(b[len(body):]) {
		return nil, fmt.Errorf("%w: its checksum", errDamaged)
	}
	r := reader{b: body[len(magic):]}
	d := &document{}
	h := r.bytes()
	if r.bad {
		return nil, fmt.Errorf("%w: its header", errDamaged)
	}
	if err := json.Unmarshal(h, &d.header); err != nil {
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	n := r.uvarint()
	if n > uint64(len(r.b)) { // an object takes several bytes
		return nil, fmt.Errorf("%w: %d objects in %d bytes", errDamaged, n, len(r.b))
	}
	if err := r.entries(d, int(n)); err != nil {
		return nil, err
	}
	if len(r.b) > 0 {
		return nil, fmt.Errorf("%w: %d bytes too many", errDamaged, len(r.b))
	}
	return d, nil
}

// reader takes a document apart; bad says that it ended too soon.
type reader struct {
	b   []byte
	bad bool
	// all is what b was when the objects began. Their strings are cut from it, so
	// that they take no allocation each.
	all string
	// names holds the names of objects, one behind the other.
	names []byte
}

// entries reads n objects.
func (r *reader) entries(d *document, n int) error {
	d.entries = make([]entry, n)
	ends := make([]int, n)
	r.all, r.names = string(r.b), make([]byte, 0, len(r.b))
	var last []byte
	for i := range d.entries {
		from := len(r.names)
		r.entry(&d.entries[i], last)
		name := r.names[from:]
		if r.bad || i > 0 && bytes.Compare(name, last) <= 0 || len(name) == 0 {
			return fmt.Errorf("%w: object %d", errDamaged, i)
		}
		last, ends[i] = name, len(r.names)
	}
	names, from := string(r.names), 0
	for i, end := range ends {
		d.entries[i].name, from = names[from:end], end
	}
	return nil
}

func (r *reader) entry(e *entry, last []byte) {
	n := r.uvarint()
	if n > uint64(len(last)) {
		r.bad = true
		return
	}
	r.names = append(append(r.names, last[:n]...), r.bytes()...)
	e.blob = r.string()
	e.size = int64(r.uvarint())
	flags := r.take(1)
	if r.bad || e.size < 0 || flags[0] > hasSum|hasVersion {
		r.bad = true
		return
	}
	if flags[0]&hasSum != 0 {
		copy(e.sum[:], r.take(len(e.sum)))
	}
	if flags[0]&hasVersion != 0 {
		e.version = r.string()
	}
}

func (r *reader) string() string {
	n := len(r.bytes())
	end := len(r.all) - len(r.b)
	return r.all[end-n : end]
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) bytes() []byte {
	n := r.uvarint()
	if n > uint64(len(r.b)) {
		r.bad = true
		return nil
	}
	return r.take(int(n))
}

func (r *reader) take(n int) []byte {
	if n > len(r.b) {
		r.bad, r.b = true, nil
		return nil
	}
	v := r.b[:n]
	r.b = r.b[n:]
	return v
}
