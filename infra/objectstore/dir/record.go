package dir

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"penstock/infra/objectstore"
)

const (
	recordMagic = 0x31525350 // "PSR1", little endian
	headerSize  = 20
	checkedSize = 16 // bytes of the header that its checksum covers
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendRecord appends the record's bytes to b.
func appendRecord(b []byte, number uint64, payload []byte) []byte {
	start := len(b)
	b = binary.LittleEndian.AppendUint32(b, recordMagic)
	b = binary.LittleEndian.AppendUint64(b, number)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(payload)))
	sum := crc32.Update(crc32.Checksum(b[start:], castagnoli), castagnoli, payload)
	b = binary.LittleEndian.AppendUint32(b, sum)
	return append(b, payload...)
}

// scan calls fn for the records in the first size bytes of r. A record that
// reaches beyond them, or a damaged one that ends exactly there, is unfinished
// (ErrTorn); a damaged one with more behind it is damage (ErrCorrupt), and
// nobody may cut there.
func scan(r io.Reader, size int64, fn func(number uint64, payload []byte) error) error {
	if size == 0 {
		return nil
	}
	in := bufio.NewReaderSize(r, small)
	var header [headerSize]byte
	var payload []byte
	var last uint64
	for at := int64(0); at < size; {
		left := size - at
		if left < headerSize {
			return objectstore.ErrTorn
		}
		if _, err := io.ReadFull(in, header[:]); err != nil {
			return readError(err)
		}
		number := binary.LittleEndian.Uint64(header[4:])
		length := int64(binary.LittleEndian.Uint32(header[12:]))
		if binary.LittleEndian.Uint32(header[:]) != recordMagic {
			if zeros(header[:], in) {
				return objectstore.ErrTorn
			}
			return damaged(at, "its beginning")
		}
		if headerSize+length > left {
			return objectstore.ErrTorn
		}
		if int64(cap(payload)) < length {
			payload = make([]byte, length)
		}
		payload = payload[:length]
		if _, err := io.ReadFull(in, payload); err != nil {
			return readError(err)
		}
		sum := crc32.Update(crc32.Checksum(header[:checkedSize], castagnoli), castagnoli, payload)
		switch {
		case sum != binary.LittleEndian.Uint32(header[checkedSize:]) && headerSize+length == left:
			return objectstore.ErrTorn
		case sum != binary.LittleEndian.Uint32(header[checkedSize:]):
			return damaged(at, "its checksum")
		case at > 0 && number <= last:
			return damaged(at, "its number")
		}
		if err := fn(number, payload); err != nil {
			return err
		}
		last = number
		at += headerSize + length
	}
	return nil
}

// zeros reports that nothing but zeros follows: what a file system leaves of an
// append that was never synced.
func zeros(head []byte, in *bufio.Reader) bool {
	for _, b := range head {
		if b != 0 {
			return false
		}
	}
	for {
		b, err := in.ReadByte()
		if err != nil {
			return errors.Is(err, io.EOF)
		}
		if b != 0 {
			return false
		}
	}
}

func damaged(at int64, what string) error {
	return fmt.Errorf("at byte %d, %s: %w", at, what, objectstore.ErrCorrupt)
}

func readError(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return objectstore.ErrTorn // cut by another meanwhile
	}
	return fmt.Errorf("read record: %w", err)
}
