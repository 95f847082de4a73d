package span

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
)

// Trace is a trace's id; one of 64 bits stands in the last 8 bytes.
type Trace [16]byte

// ID is a span's id within its trace.
type ID [8]byte

// String returns the id in hexadecimal.
func (t Trace) String() string { return hex.EncodeToString(t[:]) }

// String returns the id in hexadecimal.
func (i ID) String() string { return hex.EncodeToString(i[:]) }

// Low returns the id without its upper 64 bits, which some hosts of a trace may
// not know.
func (t Trace) Low() Trace {
	clear(t[:8])
	return t
}

// ParseTrace reads a trace id: up to 32 hexadecimal digits, leading zeros may be
// missing. An empty text is no id, and no error.
func ParseTrace(s string) (t Trace, err error) {
	err = parseHex(t[:], s)
	return t, err
}

// ParseID reads a span id: up to 16 hexadecimal digits, leading zeros may be
// missing. An empty text is no id, and no error.
func ParseID(s string) (i ID, err error) {
	err = parseHex(i[:], s)
	return i, err
}

// ParseProtoTrace reads a trace id as JSON of OTLP has it: 32 hexadecimal digits
// as its specification wants, or base64 of 16 bytes, as other mappings of
// protobuf to JSON write it.
func ParseProtoTrace(s string) (t Trace, err error) {
	err = parseProto(t[:], s)
	return t, err
}

// ParseProtoID is ParseProtoTrace for a span's id: 16 digits or base64 of 8 bytes.
func ParseProtoID(s string) (i ID, err error) {
	err = parseProto(i[:], s)
	return i, err
}

func parseProto(dst []byte, s string) error {
	if s == "" || len(s) == 2*len(dst) {
		return parseHex(dst, s)
	}
	for _, e := range [...]*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		// Decode writes more than fits where the text is too long.
		if e.EncodedLen(len(dst)) != len(s) {
			continue
		}
		if b, err := e.DecodeString(s); err == nil && len(b) == len(dst) {
			copy(dst, b)
			return nil
		}
	}
	return fmt.Errorf("id %.40q, expected %d hexadecimal digits or base64 of %d bytes: %w", s, 2*len(dst), len(dst), ErrMalformed)
}

// parseHex puts the digits to the end of dst.
func parseHex(dst []byte, s string) error {
	if len(s) > 2*len(dst) {
		return fmt.Errorf("id %.40q, expected at most %d hexadecimal digits: %w", s, 2*len(dst), ErrMalformed)
	}
	clear(dst)
	for i := range len(s) {
		d, ok := digit(s[len(s)-1-i])
		if !ok {
			clear(dst)
			return fmt.Errorf("id %.40q, expected hexadecimal digits: %w", s, ErrMalformed)
		}
		dst[len(dst)-1-i/2] |= d << (4 * (i % 2))
	}
	return nil
}

func digit(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}
