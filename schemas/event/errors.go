package event

import "errors"

var (
	// ErrUndecodable is returned when bytes are not a batch, a mark or headers
	// of a known schema. Nothing of the input was used.
	ErrUndecodable = errors.New("undecodable event")

	// ErrSchema is returned when a message names a schema that this version
	// does not read. It wraps ErrUndecodable.
	ErrSchema = &schemaError{}

	// ErrInvalid is returned by Request.Check for a row that no batch may
	// hold, such as an id of more than MaxID bytes. The batch is unchanged.
	ErrInvalid = errors.New("invalid request")
)

type schemaError struct{}

func (*schemaError) Error() string { return "unknown schema" }
func (*schemaError) Unwrap() error { return ErrUndecodable }
