package catalog

import (
	"fmt"
	"time"

	"penstock/consumers/executor/coder/field"
)

// Record is what is known of a key: all that head and list answer.
type Record struct {
	Key string
	// Size is the object's, in bytes.
	Size int64
	// ETag is without quotes.
	ETag string
	// Modified is UTC in whole microseconds.
	Modified  time.Time
	Checksums []Checksum
	Headers   Headers
	// Metadata is the user's, names without x-amz-meta-.
	Metadata map[string]string
	// Parts are the versions whose bytes on end are the object: one after a put, more
	// after an upload.
	Parts []Piece
}

// Headers are those that a client gives with an object and gets back with it.
type Headers struct {
	CacheControl, ContentDisposition, ContentEncoding, ContentLanguage, ContentType, Expires string
}

// Checksum is one that a client gave or asked for beside the etag.
type Checksum struct {
	// Algorithm is S3's name: CRC32, CRC32C, CRC64NVME, SHA1, SHA256.
	Algorithm string
	// Value is in base64, with "-N" after a composite one.
	Value string
	// Composite tells that it is a checksum of the parts' checksums.
	Composite bool
}

// Piece is a version as part of an object.
type Piece struct {
	// Version is the id of the document, see Catalog.Version.
	Version string
	// Size is in bytes.
	Size int64
	// Number is that of the part of the upload, and 0 after a put.
	Number int
}

// Listed is a record in a listing.
type Listed struct {
	Key       string
	Size      int64
	ETag      string
	Modified  time.Time
	Checksums []Checksum
	// Parts is how many versions the object has.
	Parts int
}

// Condition is asked inside the transaction about the record that a key has, nil for
// none. What it returns ends the transaction without a change and is what the caller
// gets; it should wrap ErrPrecondition. It must not call the catalog, and may be called
// by another goroutine. A nil Condition holds.
type Condition func(now *Record) error

// inlineParts is how many pieces stand in the record itself. The pieces of others stand in
// a row of manifests: pages of records stay small, and a list of 10,000 parts isn't
// written anew whenever a key beside it is.
const inlineParts = 4

// A record's value is: size, modified, etag, the number of parts, checksums (what listings
// need, first), the headers, metadata, and the pieces or the id of their manifest.
func (r *Record) encode() []byte {
	b := make([]byte, 0, 160+len(r.ETag))
	b = appendNumber(append(b, valueFormat), r.Size)
	b = field.AppendText(field.AppendTime(b, r.Modified), r.ETag)
	b = appendNumber(b, len(r.Parts))
	b = appendChecksums(b, r.Checksums)
	b = field.AppendMap(appendHeaders(b, &r.Headers), r.Metadata)
	if len(r.Parts) > inlineParts {
		return field.AppendText(b, r.Parts[0].Version)
	}
	return appendPieces(b, r.Parts)
}

// decodeListed reads what listings need, and gives the rest.
func decodeListed(value []byte) (Listed, *fields, error) {
	f := read(value)
	var l Listed
	l.Size, l.Modified, l.ETag = f.size("size"), f.Time("modified"), f.Text("etag", maxText)
	l.Parts = f.Count("parts", maxPart)
	l.Checksums = f.checksums()
	return l, f, f.err("record")
}

// decodeRecord reads a record, all but the pieces that stand in a manifest: those it says
// by the manifest's id.
func decodeRecord(key string, value []byte) (r Record, manifest string, err error) {
	l, f, err := decodeListed(value)
	if err != nil {
		return Record{}, "", err
	}
	r = Record{Key: key, Size: l.Size, ETag: l.ETag, Modified: l.Modified, Checksums: l.Checksums}
	r.Headers, r.Metadata = f.headers(), f.Map("metadata", maxFields, maxMetadata)
	if l.Parts > inlineParts {
		manifest = f.Text("manifest", maxID)
	} else {
		r.Parts = f.pieces(l.Parts)
	}
	return r, manifest, f.end("record")
}

// record reads the record of a key, nil if it has none.
func (v *view) record(bucket, key string) (*Record, error) {
	value := v.get(records, join(bucket, key))
	if value == nil {
		return nil, nil
	}
	r, manifest, err := decodeRecord(key, value)
	if err == nil && manifest != "" {
		f := read(v.get(manifests, []byte(manifest)))
		r.Parts = f.pieces(f.Count("parts", maxPart))
		err = f.end("manifest " + manifest)
	}
	if err != nil {
		return nil, fmt.Errorf("%s/%s: %w", bucket, key, err)
	}
	return &r, nil
}

// putRecord writes a record, and its manifest if that is new.
func (v *view) putRecord(bucket string, r *Record, manifest bool) {
	if manifest && len(r.Parts) > inlineParts {
		b := appendNumber([]byte{valueFormat}, len(r.Parts))
		v.put(manifests, []byte(r.Parts[0].Version), appendPieces(b, r.Parts))
	}
	v.put(records, join(bucket, r.Key), r.encode())
}

// validate returns ErrInput if no row can hold the record, and rounds its time.
func (r *Record) validate() error {
	if err := checkName("key", r.Key, maxKey); err != nil {
		return err
	}
	if r.Size < 0 || r.Size > maxSize {
		return fmt.Errorf("%w: %d bytes", ErrInput, r.Size)
	}
	if err := checkTime(r.Modified); err != nil {
		return err
	}
	r.Modified = micros(r.Modified)
	if err := checkText("etag", r.ETag); err != nil {
		return err
	}
	if err := checkChecksums(r.Checksums); err != nil {
		return err
	}
	if err := r.Headers.validate(); err != nil {
		return err
	}
	return checkMetadata(r.Metadata)
}

func checkTime(t time.Time) error {
	if year := t.UTC().Year(); year < 1 || year > 9999 {
		return fmt.Errorf("%w: time in the year %d", ErrInput, year)
	}
	return nil
}

func (h *Headers) all() [6]*string {
	return [...]*string{
		&h.CacheControl, &h.ContentDisposition, &h.ContentEncoding, &h.ContentLanguage, &h.ContentType, &h.Expires,
	}
}

func (h *Headers) validate() error {
	for _, text := range h.all() {
		if err := checkText("header", *text); err != nil {
			return err
		}
	}
	return nil
}

func appendHeaders(b []byte, h *Headers) []byte {
	for _, text := range h.all() {
		b = field.AppendText(b, *text)
	}
	return b
}

func (f *fields) headers() (h Headers) {
	for _, text := range h.all() {
		*text = f.Text("header", maxText)
	}
	return h
}

func checkChecksums(sums []Checksum) error {
	if len(sums) > maxSums {
		return fmt.Errorf("%w: %d checksums", ErrInput, len(sums))
	}
	for _, s := range sums {
		if err := checkText("checksum", s.Algorithm); err != nil {
			return err
		}
		if err := checkText("checksum", s.Value); err != nil {
			return err
		}
	}
	return nil
}

func appendChecksums(b []byte, sums []Checksum) []byte {
	b = appendNumber(b, len(sums))
	for _, s := range sums {
		b = appendBool(field.AppendText(field.AppendText(b, s.Algorithm), s.Value), s.Composite)
	}
	return b
}

func (f *fields) checksums() []Checksum {
	var sums []Checksum
	for range f.Count("checksums", maxSums) {
		sums = append(sums, Checksum{f.Text("checksum", maxText), f.Text("checksum", maxText), f.bool("checksum")})
	}
	return sums
}

func appendPieces(b []byte, parts []Piece) []byte {
	for _, p := range parts {
		b = appendNumber(appendNumber(field.AppendText(b, p.Version), p.Size), p.Number)
	}
	return b
}

func (f *fields) pieces(n int) []Piece {
	var parts []Piece
	for range n {
		p := Piece{f.Text("part", maxID), f.size("part"), f.Count("part", maxPart)}
		if f.Fault() != "" {
			return nil
		}
		parts = append(parts, p)
	}
	return parts
}
