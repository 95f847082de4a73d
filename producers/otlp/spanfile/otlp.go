package spanfile

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"penstock/producers/otlp/span"
	"penstock/producers/otlp/wire"
)

func readOTLP(r *reader, in *bufio.Reader) error {
	var at int64
	var now []byte
	d := wire.New(r.mapper, r.add, func(err error) { r.bad(at, now, err) })
	return r.each(in, func(line int64, raw []byte) error {
		at, now = line, raw
		return d.JSON(raw)
	})
}

// maxMessage bounds one message of protobuf.
const maxMessage = 128 << 20

// readProto reads one message, or messages behind their lengths. The tag of a
// message's first field as a length would be more than maxMessage: it tells which.
func readProto(r *reader, in *bufio.Reader) error {
	var number int64
	d := wire.New(r.mapper, r.add, func(err error) { r.bad(number, nil, err) })
	head, err := in.Peek(1)
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return broken(err)
	}
	if head[0] == 0x0a {
		number = 1
		return r.message(d, number, in, maxMessage+1)
	}
	for {
		if err := r.stopped(); err != nil {
			return err
		}
		var length [4]byte
		if _, err := io.ReadFull(in, length[:]); errors.Is(err, io.EOF) {
			return nil
		} else if errors.Is(err, io.ErrUnexpectedEOF) {
			r.bad(number+1, nil, fmt.Errorf("a length of four bytes: %w", span.ErrMalformed))
			return nil
		} else if err != nil {
			return broken(err)
		}
		number++
		n := int64(binary.BigEndian.Uint32(length[:]))
		if n > maxMessage {
			// What follows can't be found.
			return fmt.Errorf("message %d of %d bytes, expected at most %d: %w", number, n, maxMessage, ErrFormat)
		}
		if err := r.message(d, number, io.LimitReader(in, n), n); err != nil {
			return err
		}
	}
}

// message reads one message; fewer bytes than its length say make it half a one.
func (r *reader) message(d *wire.Decoder, number int64, in io.Reader, length int64) error {
	b, err := io.ReadAll(io.LimitReader(in, maxMessage+1))
	switch {
	case err != nil:
		return broken(err)
	case int64(len(b)) > maxMessage:
		return fmt.Errorf("message %d of more than %d bytes: %w", number, maxMessage, ErrFormat)
	case length <= maxMessage && int64(len(b)) < length:
		r.bad(number, nil, fmt.Errorf("a message of %d bytes, got %d: %w", length, len(b), span.ErrMalformed))
		return nil
	}
	if err := d.Proto(b); err != nil {
		r.bad(number, nil, err)
	}
	return nil
}
