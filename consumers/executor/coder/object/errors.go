package object

import "errors"

var (
	// ErrCoding is returned for a coding, shape or (n,k) that doesn't exist: nothing
	// was done.
	ErrCoding = errors.New("no such coding")
	// ErrDocument is returned for a version document that is damaged, not canonical
	// or has a value out of bounds.
	ErrDocument = errors.New("not a version document")
	// ErrSchema is returned for a whole version document of a schema version that
	// this code doesn't know; the object is to be left alone.
	ErrSchema = errors.New("version document of an unknown schema version")
	// ErrTooLarge is returned when an object has more strips than a document may
	// name; larger segments allow larger objects. What was encoded is to be dropped.
	ErrTooLarge = errors.New("object too large for its segments")
	// ErrTooFew is returned when fewer strips of a segment than decoding needs are
	// there and whole. No byte was handed out; more strips may be added.
	ErrTooFew = errors.New("too few whole strips")
	// ErrMismatch is returned when a strip that was rebuilt from whole ones fails its
	// checksum, or the whole fails its SHA-256: the document and the strips are not
	// of one encoding. No byte of that strip was handed out.
	ErrMismatch = errors.New("content does not match its version document")
	// ErrRange is returned for a segment, strip or byte that the version doesn't have.
	ErrRange = errors.New("out of range")
	// ErrState is returned for calls in an order that isn't allowed. Nothing changed.
	ErrState = errors.New("out of order")
)
