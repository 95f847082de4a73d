package objectstore

import "context"

// Record is a numbered piece of an object that only grows.
type Record struct {
	Number  uint64
	Payload []byte
}

// Records is what a store offers besides, when it can append: objects made of
// numbered records, each written once however often it is sent. A record is
//
//	magic "PSR1" | number uint64 | payload length uint32 | CRC-32C uint32 | payload
//
// little endian, the checksum over all that stands before it and the payload.
// Numbers ascend within an object. To everything else such an object is one like
// any other.
type Records interface {
	// AppendAll appends those of the records whose number is above the last one
	// there, and returns how many that were; the others are there already. An
	// unfinished record at the end, left by a crash, is cut off first. The owner
	// and the object are created if need be: with no records, an empty object.
	// The copy must be one that may be written to, else it returns a
	// *MarkedError. ErrOrder, ErrCorrupt. Calls for one owner run one after
	// another, and never while it is held.
	AppendAll(ctx context.Context, owner, file string, records []Record) (int, error)
	// Tail returns the number of the last whole record; false if there is none
	// or no such object. ErrCorrupt.
	Tail(ctx context.Context, owner, file string) (uint64, bool, error)
	// Scan calls fn for every whole record in order; the payload is valid until
	// fn returns. It ends with fn's first error, ErrCorrupt or ErrTorn, or nil.
	// ErrNoOwner, ErrNoObject.
	Scan(ctx context.Context, owner, file string, fn func(number uint64, payload []byte) error) error
}

// Append appends one record.
func Append(ctx context.Context, s Records, owner, file string, number uint64, payload []byte) error {
	_, err := s.AppendAll(ctx, owner, file, []Record{{Number: number, Payload: payload}})
	return err
}
