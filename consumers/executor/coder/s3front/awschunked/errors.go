package awschunked

import "errors"

var (
	// ErrTruncated is returned when the body ends before its last chunk does.
	ErrTruncated = errors.New("aws-chunked body is cut off")
	// ErrMalformed is returned for what is no aws-chunked body.
	ErrMalformed = errors.New("malformed aws-chunked body")
	// ErrChunkSize is returned for a chunk of less than MinChunk bytes that isn't the
	// last with data.
	ErrChunkSize = errors.New("chunk is too small")
	// ErrSignature is returned when a chunk or the trailer isn't what was signed.
	ErrSignature = errors.New("signature of a chunk does not match")
	// ErrLength is returned when there is more data, or less, than was said.
	ErrLength = errors.New("data is not of the length that was said")
	// ErrTrailer is returned for a trailer that isn't the one that was announced.
	ErrTrailer = errors.New("malformed trailer")
)
