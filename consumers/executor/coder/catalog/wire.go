package catalog

import (
	"encoding/binary"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"penstock/consumers/executor/coder/field"
)

// Values are fields in their order, as package field has them. Each value but a document
// begins with valueFormat, so that two catalogs can be compared by their bytes.
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

func appendNumber[T ~int | ~int64 | ~uint64 | ~uint32](b []byte, n T) []byte {
	return binary.AppendUvarint(b, uint64(n)) //nolint:gosec // callers check that it isn't negative
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

// fields are the fields of a value.
type fields struct {
	field.Reader
	unknown bool // the fault is a format of another version of this program
}

// read begins a value of a row.
func read(value []byte) *fields {
	f := fieldsOf(value)
	if b := f.Take("format", 1); f.Fault() == "" && b[0] != valueFormat {
		f.Fail(fmt.Sprintf("format %d", b[0]))
		f.unknown = true
	}
	return f
}

func fieldsOf(b []byte) *fields { return &fields{Reader: field.Reader{Rest: b}} }

// err returns ErrDamaged for the first fault, or ErrFormat.
func (f *fields) err(what string) error {
	if f.unknown {
		return fmt.Errorf("%w: %s: %s", ErrFormat, what, f.Fault())
	}
	if f.Fault() != "" {
		return fmt.Errorf("%w: %s: %s", ErrDamaged, what, f.Fault())
	}
	return nil
}

// end is err, and a fault if something is left.
func (f *fields) end(what string) error {
	f.End()
	return f.err(what)
}

func (f *fields) size(what string) int64 { return int64(f.Number(what, maxSize)) } //nolint:gosec // bounded

func (f *fields) bool(what string) bool { return f.Number(what, 1) == 1 }

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
