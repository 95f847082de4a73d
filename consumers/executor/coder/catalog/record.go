package catalog

import (
	"time"
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
