package jetstream

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"penstock/consumers/executor/coder/chunks"
)

const (
	sizeHeader = "Penstock-Size"    // bytes of the blob
	idHeader   = "Penstock-Content" // of its pieces; none if the entry holds the content
)

// entry is what the message of a blob says.
type entry struct {
	sequence uint64 // of the message
	size     int64
	content  []byte // of a blob without pieces
	id       string
	piece    int64    // bytes of each piece but the last
	pieces   []uint64 // their sequences
}

// message of an entry. A body is the content, or as unsigned varints: the bytes of a
// piece, and the sequence of each piece less that of the one before.
func (e *entry) message(subject string) *nats.Msg {
	m := message(subject, e.content)
	m.Header.Set(sizeHeader, strconv.FormatInt(e.size, 10))
	if e.id != "" {
		m.Header.Set(idHeader, e.id)
		m.Data = binary.AppendUvarint(make([]byte, 0, 16+2*len(e.pieces)), uint64(e.piece))
		last := uint64(0)
		for _, sequence := range e.pieces {
			m.Data = binary.AppendUvarint(m.Data, sequence-last)
			last = sequence
		}
	}
	return m
}

// parseEntry reads a message's header and body. It returns ErrPieces for what isn't an
// entry, with the id where there is one.
func parseEntry(header nats.Header, data []byte) (entry, error) {
	e := entry{id: header.Get(idHeader)}
	size, err := sizeOf(header)
	if err != nil {
		return e, err
	}
	e.size = size
	if e.id == "" {
		if e.content = data; int64(len(data)) != size {
			return e, fmt.Errorf("%w: %d bytes of %d", ErrPieces, len(data), size)
		}
		return e, nil
	}
	bad := fmt.Errorf("%w: a damaged entry", ErrPieces)
	take := func() uint64 {
		n, length := binary.Uvarint(data)
		if length <= 0 {
			data = nil
			return 0
		}
		data = data[length:]
		return n
	}
	e.piece = int64(take()) //nolint:gosec // looked at below
	if e.piece <= 0 || (size+e.piece-1)/e.piece > int64(len(data)) {
		return e, bad
	}
	last := uint64(0)
	for at := int64(0); at < size; at += e.piece {
		step := take()
		if step == 0 || last+step < last {
			return e, bad
		}
		last += step
		e.pieces = append(e.pieces, last)
	}
	if len(data) > 0 {
		return e, bad
	}
	return e, nil
}

func sizeOf(header nats.Header) (int64, error) {
	n, err := strconv.ParseUint(header.Get(sizeHeader), 10, 62)
	if err != nil {
		return 0, fmt.Errorf("%w: an entry of %.40q bytes", ErrPieces, header.Get(sizeHeader))
	}
	return int64(n), nil //nolint:gosec // 62 bits
}

// entry reads the entry of a key. ErrNotFound if there is none; of one that is damaged,
// ErrPieces and its sequence.
func (s *Store) entry(ctx context.Context, key string) (entry, error) {
	ctx, cancel := s.within(ctx)
	defer cancel()
	m, err := s.stream.GetLastMsgForSubject(ctx, s.subjectOf(key))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return entry{}, chunks.ErrNotFound
	}
	if err != nil {
		return entry{}, err
	}
	e, err := parseEntry(m.Header, m.Data)
	e.sequence = m.Sequence
	return e, err
}
