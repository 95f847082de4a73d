package catalog

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Values are the fields in their order: whole numbers as unsigned varints of least
// length, times as zig-zag varints of microseconds since 1970, texts as their length and
// bytes. Each value but a document begins with valueFormat. A value has exactly one
// encoding, so that two catalogs can be compared by their bytes.
const valueFormat = 1

const (
	maxName     = 255       // bytes of a bucket's name
	maxKey      = 1024      // bytes of a key, and of a blob's
	maxID       = 128       // bytes of the id of a version, intent or upload
	maxStore    = 256       // bytes of a store's name
	maxText     = 4 << 10   // bytes of a header, an etag or a checksum
	maxMetadata = 16 << 10  // bytes of all names and values
	maxFields   = 512       // pairs of metadata
	maxSums     = 16        // checksums of a record
	maxPlaces   = 1 << 10   // places of an intent
	maxPart     = 10_000    // number of a part, and how many a record has
	maxSize     = 1 << 50   // bytes of an object
	maxBlobs    = 1 << 10   // blobs of a version
	maxChange   = 256 << 20 // bytes of a change
)

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendNumber[T ~int | ~int64 | ~uint64 | ~uint32](b []byte, n T) []byte {
	return binary.AppendUvarint(b, uint64(n)) //nolint:gosec // callers check that it isn't negative
}

func appendTime(b []byte, t time.Time) []byte { return binary.AppendVarint(b, t.UnixMicro()) }

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

func appendMap(b []byte, m map[string]string) []byte {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	b = appendNumber(b, len(names))
	for _, name := range names {
		b = appendText(appendText(b, name), m[name])
	}
	return b
}

// fields takes fields from the front of rest. After the first fault, which it keeps, all
// are zero.
type fields struct {
	rest    []byte
	fault   string
	unknown bool // the fault is a format of another version of this program
}

// read begins a value of a row.
func read(value []byte) *fields {
	f := &fields{rest: value}
	if b := f.take("format", 1); f.fault == "" && b[0] != valueFormat {
		f.fail(fmt.Sprintf("format %d", b[0]))
		f.unknown = true
	}
	return f
}

func (f *fields) fail(what string) {
	if f.fault == "" {
		f.fault = what
	}
	f.rest = nil
}

// err returns ErrDamaged for the first fault, or ErrFormat.
func (f *fields) err(what string) error {
	if f.unknown {
		return fmt.Errorf("%w: %s: %s", ErrFormat, what, f.fault)
	}
	if f.fault != "" {
		return fmt.Errorf("%w: %s: %s", ErrDamaged, what, f.fault)
	}
	return nil
}

// end is err, and a fault if something is left.
func (f *fields) end(what string) error {
	if f.fault == "" && len(f.rest) > 0 {
		f.fail("bytes after the end")
	}
	return f.err(what)
}

func (f *fields) take(what string, n int) []byte {
	if f.fault != "" || n > len(f.rest) {
		f.fail(what + ": cut off")
		return nil
	}
	b := f.rest[:n]
	f.rest = f.rest[n:]
	return b
}

func (f *fields) number(what string, most uint64) uint64 {
	n, length := binary.Uvarint(f.rest)
	if f.fault != "" || length <= 0 || n > most || (length > 1 && f.rest[length-1] == 0) {
		f.fail(what + ": not a number in bounds")
		return 0
	}
	f.rest = f.rest[length:]
	return n
}

func (f *fields) count(what string, most int) int { return int(f.number(what, uint64(most))) } //nolint:gosec // bounded

func (f *fields) size(what string) int64 { return int64(f.number(what, maxSize)) } //nolint:gosec // bounded

func (f *fields) bool(what string) bool { return f.number(what, 1) == 1 }

func (f *fields) text(what string, most int) string {
	return string(f.take(what, f.count(what, most)))
}

func (f *fields) time(what string) time.Time {
	u := f.number(what, math.MaxUint64)
	return time.UnixMicro(int64(u>>1) ^ -int64(u&1)).UTC() //nolint:gosec // the inverse of zig-zag
}

func (f *fields) stringMap(what string) map[string]string {
	var m map[string]string
	last := ""
	for i := range f.count(what, maxFields) {
		name, value := f.text(what, maxMetadata), f.text(what, maxMetadata)
		if f.fault != "" {
			return nil
		}
		if i > 0 && name <= last {
			f.fail(what + ": out of order")
			return nil
		}
		if m == nil {
			m = make(map[string]string)
		}
		m[name], last = value, name
	}
	return m
}

// micros is a time as the catalog keeps it.
func micros(t time.Time) time.Time { return time.UnixMicro(t.UnixMicro()).UTC() }

// checkName returns ErrInput for what can't be part of a row's key.
func checkName(what, s string, most int) error {
	if s == "" || len(s) > most || strings.IndexByte(s, 0) >= 0 {
		return fmt.Errorf("%w: %s of %d bytes", ErrInput, what, len(s))
	}
	return nil
}

func checkText(what, s string) error {
	if len(s) > maxText || !utf8.ValidString(s) {
		return fmt.Errorf("%w: %s of %d bytes", ErrInput, what, len(s))
	}
	return nil
}

func checkMetadata(m map[string]string) error {
	total := 0
	for name, value := range m {
		if name == "" || !utf8.ValidString(name) || !utf8.ValidString(value) {
			return fmt.Errorf("%w: metadata %q", ErrInput, name)
		}
		total += len(name) + len(value)
	}
	if total > maxMetadata || len(m) > maxFields {
		return fmt.Errorf("%w: %d bytes of metadata in %d fields", ErrInput, total, len(m))
	}
	return nil
}
