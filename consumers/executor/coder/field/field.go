// Package field holds what the formats of a coder are made of (documents of versions,
// rows of the catalog, blobs of its log): whole numbers as unsigned varints of least
// length, times as zig-zag varints of microseconds since 1970, texts as their length and
// bytes, maps as their number of pairs and these by ascending name. A value has exactly
// one encoding, so that equal ones have equal bytes.
//
// A [Reader] takes fields from the front of bytes that nobody vouches for: nothing that
// they claim is believed before it is checked against a bound and against their length.
// Its states: fine, and at fault, for good; then all fields are zero. What a fault means
// is the format's to say.
package field

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"time"
)

// AppendText appends a text.
func AppendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// AppendTime appends a time.
func AppendTime(b []byte, t time.Time) []byte { return binary.AppendVarint(b, t.UnixMicro()) }

// AppendMap appends a map.
func AppendMap(b []byte, m map[string]string) []byte {
	b = binary.AppendUvarint(b, uint64(len(m)))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		b = AppendText(AppendText(b, name), m[name])
	}
	return b
}

// Reader takes fields from the front of Rest.
type Reader struct {
	Rest  []byte
	fault string
}

// Fault is the first fault in words, "" without any.
func (r *Reader) Fault() string { return r.fault }

// Fail notes a fault, unless there is one already, and drops what is left.
func (r *Reader) Fail(what string) {
	if r.fault == "" {
		r.fault = what
	}
	r.Rest = nil
}

// End is a fault if something is left.
func (r *Reader) End() {
	if r.fault == "" && len(r.Rest) > 0 {
		r.Fail("bytes after the end")
	}
}

// Take takes n bytes, which stay those of Rest; nil if there are fewer.
func (r *Reader) Take(what string, n int) []byte {
	if r.fault != "" || n > len(r.Rest) {
		r.Fail(what + ": cut off")
		return nil
	}
	b := r.Rest[:n]
	r.Rest = r.Rest[n:]
	return b
}

// Number takes a number that is at most most.
func (r *Reader) Number(what string, most uint64) uint64 {
	n, length := binary.Uvarint(r.Rest)
	if r.fault != "" || length <= 0 || n > most || (length > 1 && r.Rest[length-1] == 0) {
		r.Fail(what + ": not a number in bounds")
		return 0
	}
	r.Rest = r.Rest[length:]
	return n
}

// Count takes a number that is at most most, which is not negative.
func (r *Reader) Count(what string, most int) int { return int(r.Number(what, uint64(most))) } //nolint:gosec // bounded

// Text takes a text of at most so many bytes.
func (r *Reader) Text(what string, most int) string {
	return string(r.Take(what, r.Count(what, most)))
}

// Time takes a time; it is in UTC.
func (r *Reader) Time(what string) time.Time {
	u := r.Number(what, math.MaxUint64)
	return time.UnixMicro(int64(u>>1) ^ -int64(u&1)).UTC() //nolint:gosec // the inverse of zig-zag
}

// Map takes a map of at most so many pairs, of texts of at most so many bytes; nil for
// one without any.
func (r *Reader) Map(what string, pairs, most int) map[string]string {
	var m map[string]string
	last := ""
	for i := range r.Count(what, pairs) {
		name, value := r.Text(what, most), r.Text(what, most)
		if r.fault == "" && i > 0 && name <= last {
			r.Fail(what + ": out of order")
		}
		if r.fault != "" {
			return nil
		}
		if m == nil {
			m = make(map[string]string)
		}
		m[name], last = value, name
	}
	return m
}
