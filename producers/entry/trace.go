package entry

import (
	"encoding/hex"
	"math/rand/v2"
	"net/http"
)

// traceparentLen is the length of a traceparent of version 00.
const traceparentLen = 55

// parseTrace reads a traceparent (W3C Trace Context, level 1): the id of the
// trace and its flags. A later version may be longer.
func parseTrace(s string) (id [16]byte, flags byte, ok bool) {
	if len(s) < traceparentLen || s[2] != '-' || s[35] != '-' || s[52] != '-' {
		return id, 0, false
	}
	for i := range traceparentLen {
		if c := s[i]; i != 2 && i != 35 && i != 52 && (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return id, 0, false
		}
	}
	if s[:2] == "ff" || s[:2] == "00" && len(s) > traceparentLen || len(s) > traceparentLen && s[traceparentLen] != '-' {
		return id, 0, false
	}
	var span [8]byte
	var last [1]byte
	_, _ = hex.Decode(id[:], []byte(s[3:35])) // all are digits, as seen above
	_, _ = hex.Decode(span[:], []byte(s[36:52]))
	_, _ = hex.Decode(last[:], []byte(s[53:55]))
	return id, last[0], id != [16]byte{} && span != [8]byte{}
}

// joinTrace makes the request that goes on part of the client's trace, or of a
// new one, under a span id of the entry point's. value is where the header's
// value lives.
func joinTrace(h http.Header, sample float64, value *[1]string) (id [16]byte) {
	flags, ok := byte(0), false
	if v := h["Traceparent"]; len(v) == 1 {
		id, flags, ok = parseTrace(v[0])
	}
	if !ok {
		delete(h, "Tracestate") // it belongs to the traceparent that isn't one
		id = newTrace()
		if rand.Float64() < sample {
			flags = 1
		}
	}
	var b [traceparentLen]byte
	copy(b[:], "00-")
	hex.Encode(b[3:35], id[:])
	b[35], b[52] = '-', '-'
	span := rand.Uint64() | 1 // not all zero
	for i := range 16 {
		b[36+i] = hexDigits[span>>(60-4*i)&15]
	}
	b[53], b[54] = '0', hexDigits[flags&1]
	value[0] = string(b[:])
	h["Traceparent"] = value[:]
	return id
}

const hexDigits = "0123456789abcdef"

func newTrace() (id [16]byte) {
	for i := 0; i < 16; i += 8 {
		v := rand.Uint64() | 1
		for k := range 8 {
			id[i+k] = byte(v >> (8 * k))
		}
	}
	return id
}
