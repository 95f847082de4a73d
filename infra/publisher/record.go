package publisher

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"

	"penstock/infra/bus"
	"penstock/schemas/event"
)

// A spool file is a sequence of records: kind (1 byte), length of the payload
// and crc32c of kind and payload (4 bytes each, little endian), payload. The
// first is a head. A record that does not check ends the file. In the file of a
// run with positions, batches count only with the record of their group.
const (
	headRecord  = 'H' // run, entry, sequences cut so far, greatest watermark
	groupHead   = 'P' // the same of a run with positions
	batchRecord = 'B' // a batch: what to count, and the message
	doneRecord  = 'A' // the batch at an offset is acknowledged or given up
	dropRecord  = 'D' // sequences that were given up
	groupRecord = 'G' // the batches before it are a group; the position after it
	endRecord   = 'E' // the run has been ended on the bus

	recordHead = 9
	maxRecord  = 64 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendRecord appends a record whose payload is written by fill.
func appendRecord(dst []byte, kind byte, fill func([]byte) []byte) []byte {
	at := len(dst)
	dst = append(dst, kind, 0, 0, 0, 0, 0, 0, 0, 0)
	dst = fill(dst)
	payload := dst[at+recordHead:]
	binary.LittleEndian.PutUint32(dst[at+1:], uint32(len(payload)))
	binary.LittleEndian.PutUint32(dst[at+5:], checksum(kind, payload))
	return dst
}

func checksum(kind byte, payload []byte) uint32 {
	return crc32.Update(crc32.Checksum([]byte{kind}, castagnoli), castagnoli, payload)
}

// cutRecord returns the first record of b and what follows it. The error is
// errTorn, whatever is wrong.
func cutRecord(b []byte) (kind byte, payload, rest []byte, err error) {
	if len(b) < recordHead {
		return 0, nil, nil, errTorn
	}
	n := binary.LittleEndian.Uint32(b[1:])
	if n > maxRecord || int(n) > len(b)-recordHead {
		return 0, nil, nil, errTorn
	}
	payload = b[recordHead : recordHead+int(n)]
	if checksum(b[0], payload) != binary.LittleEndian.Uint32(b[5:]) {
		return 0, nil, nil, errTorn
	}
	return b[0], payload, b[recordHead+int(n):], nil
}

// head is the first record of a spool file.
type head struct {
	run, entry string
	seqs       []uint64
	watermark  int64
}

func (h *head) append(dst []byte) []byte {
	dst = appendText(appendText(dst, h.run), h.entry)
	dst = binary.AppendUvarint(dst, uint64(len(h.seqs)))
	for _, s := range h.seqs {
		dst = binary.AppendUvarint(dst, s)
	}
	return binary.AppendVarint(dst, h.watermark)
}

func (h *head) parse(b []byte) error {
	f := fields{b: b}
	h.run, h.entry = f.text(), f.text()
	n := f.uint()
	if n > bus.MaxPartitions {
		return errTorn
	}
	h.seqs = make([]uint64, n)
	for i := range h.seqs {
		h.seqs[i] = f.uint()
	}
	h.watermark = f.int()
	return f.end()
}

// committed is a group record.
type committed struct {
	number   uint64 // 1, 2, 3 … over all runs of the spool
	batches  int
	position []byte
}

func (c *committed) append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, c.number)
	dst = binary.AppendUvarint(dst, uint64(c.batches))
	return append(dst, c.position...)
}

func (c *committed) parse(b []byte) error {
	f := fields{b: b}
	c.number, c.batches = f.uint(), int(f.uint())
	c.position = f.b
	if f.err == nil && c.number == 0 {
		return errTorn
	}
	return f.err
}

// spooled is a batch record.
type spooled struct {
	partition int
	seq       uint64
	rows      int
	from, to  int64
	watermark int64
	msg       bus.Msg
}

func (s *spooled) append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(s.partition))
	dst = binary.AppendUvarint(dst, s.seq)
	dst = binary.AppendUvarint(dst, uint64(s.rows))
	dst = binary.AppendVarint(dst, s.from)
	dst = binary.AppendVarint(dst, s.to)
	dst = binary.AppendVarint(dst, s.watermark)
	dst = appendText(dst, s.msg.Subject)
	n := 0
	for _, vs := range s.msg.Header {
		n += len(vs)
	}
	dst = binary.AppendUvarint(dst, uint64(n))
	for _, k := range slices.Sorted(maps.Keys(s.msg.Header)) {
		for _, v := range s.msg.Header[k] {
			dst = appendText(appendText(dst, k), v)
		}
	}
	return append(dst, s.msg.Data...)
}

// parse reads a batch record. The body is a part of b.
func (s *spooled) parse(b []byte) error {
	f := fields{b: b}
	s.partition, s.seq, s.rows = int(f.uint()), f.uint(), int(f.uint())
	s.from, s.to, s.watermark = f.int(), f.int(), f.int()
	s.msg.Subject = f.text()
	s.msg.Header = event.Fields{}
	for n := f.uint(); n > 0 && f.err == nil; n-- {
		k, v := f.text(), f.text()
		s.msg.Header[k] = append(s.msg.Header[k], v)
	}
	s.msg.Data = f.b
	if f.err != nil || s.partition < 0 || s.partition > bus.MaxPartitions || s.rows < 0 || s.rows > event.MaxRows {
		return fmt.Errorf("batch record: %w", errTorn)
	}
	return nil
}

func appendDropped(dst []byte, d event.Dropped) []byte {
	dst = binary.AppendUvarint(dst, uint64(d.Partition))
	dst = binary.AppendUvarint(dst, d.First)
	dst = binary.AppendUvarint(dst, d.Last)
	dst = binary.AppendVarint(dst, d.Rows)
	dst = binary.AppendVarint(dst, d.From)
	return binary.AppendVarint(dst, d.To)
}

func parseDropped(b []byte) (event.Dropped, error) {
	f := fields{b: b}
	d := event.Dropped{Partition: int(f.uint()), First: f.uint(), Last: f.uint()}
	d.Rows, d.From, d.To = f.int(), f.int(), f.int()
	if d.Partition < 0 || d.Partition >= bus.MaxPartitions || d.First < 1 || d.Last < d.First || d.Rows < 0 || d.To < d.From {
		f.err = errTorn
	}
	return d, f.end()
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// fields reads what the appenders wrote and keeps the first error.
type fields struct {
	b   []byte
	err error
}

func (f *fields) uint() uint64 {
	v, n := binary.Uvarint(f.b)
	return take(f, v, n)
}

func (f *fields) int() int64 {
	v, n := binary.Varint(f.b)
	return take(f, v, n)
}

func take[T any](f *fields, v T, n int) T {
	var zero T
	if n <= 0 {
		f.err, f.b = errTorn, nil
		return zero
	}
	f.b = f.b[n:]
	return v
}

func (f *fields) text() string {
	n := f.uint()
	if n > uint64(len(f.b)) {
		f.err, f.b = errTorn, nil
		return ""
	}
	s := string(f.b[:n])
	f.b = f.b[n:]
	return s
}

func (f *fields) end() error {
	if f.err == nil && len(f.b) > 0 {
		return errTorn
	}
	return f.err
}
