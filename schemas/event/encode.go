package event

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/klauspost/compress/s2"

	"penstock/schemas/columnar"
)

// MaxDecoded is the greatest size of a batch's body before compression, which
// also bounds what a decoder allocates. Batches are cut far below it (MaxBytes).
const MaxDecoded = 8 << 20

// Encoder encodes batches of requests. It reuses its memory and is not safe
// for concurrent use. The zero value is ready.
type Encoder struct {
	memory requestMemory
	writer columnar.Writer
	stream []byte
}

// Encode appends the body of a batch to dst: an Arrow IPC stream of one record
// batch as one s2 block (Penstock-Encoding: s2). Equal rows appended in equal
// order have equal bytes. The error wraps ErrInvalid if the batch has more than
// MaxRows rows or MaxDecoded bytes, or columns that do not fit together; dst is
// returned as it was.
func (e *Encoder) Encode(dst []byte, b *Requests) ([]byte, error) {
	if b.Len() > MaxRows {
		return dst, fmt.Errorf("batch of %d rows, expected at most %d: %w", b.Len(), MaxRows, ErrInvalid)
	}
	if err := e.memory.view(b); err != nil {
		return dst, err
	}
	return pack(dst, &e.writer, &e.stream, e.memory.columns[:], b.Len())
}

// pack appends the compressed stream of columns to dst.
func pack(dst []byte, w *columnar.Writer, stream *[]byte, columns []columnar.Column, rows int) ([]byte, error) {
	var err error
	if *stream, err = w.Write((*stream)[:0], columns, rows, nil); err != nil {
		return dst, fmt.Errorf("encode batch: %w", err)
	}
	if len(*stream) > MaxDecoded {
		return dst, fmt.Errorf("batch of %d bytes, expected at most %d: %w", len(*stream), MaxDecoded, ErrInvalid)
	}
	return compress(dst, *stream), nil
}

// compress appends the s2 block of src to dst.
func compress(dst, src []byte) []byte {
	n := len(dst)
	most := s2.MaxEncodedLen(len(src))
	if cap(dst)-n < most {
		grown := make([]byte, n, n+most)
		copy(grown, dst)
		dst = grown
	}
	return dst[:n+len(s2.Encode(dst[n:n+most], src))]
}

var requestSchema = columnar.Schema(requestFields[:], map[string]string{"schema": RequestSchema})

// ArrowSchema returns the Arrow schema of request/1.
func ArrowSchema() *arrow.Schema { return requestSchema }

// Record returns the batch as an Arrow record, for recordings. It is a view of
// b and must be done with before b changes. The error wraps ErrInvalid.
func Record(b *Requests) (arrow.Record, error) {
	m := new(requestMemory)
	if err := m.view(b); err != nil {
		return nil, err
	}
	return columnar.Record(requestSchema, m.columns[:], b.Len()), nil
}
