package coder

import (
	"io"
	"time"

	"penstock/consumers/executor/coder/catalog"
)

// MinPart is the fewest bytes of a part of a multipart upload that isn't its last.
const MinPart = 5 << 20

// MaxParts is the most parts of a multipart upload, and the greatest number of one.
const MaxParts = 10_000

// Headers are the standard headers that a client gave an object and gets back.
type Headers = catalog.Headers

// Checksum is one of S3's, that a client gave or asked for beside the ETag.
type Checksum = catalog.Checksum

// Object is what is known of an object without reading it.
type Object struct {
	Bucket, Key string
	// Version names this content: another Put of the key has another.
	Version string
	// Size is in bytes.
	Size int64
	// ETag is without quotes: the MD5 in hex, or what S3 makes of parts.
	ETag string
	// Modified is when it was written, UTC.
	Modified time.Time
	Headers  Headers
	// Metadata are the client's own (x-amz-meta-…), by name as they were given.
	Metadata map[string]string
	// Checksums are what the client gave or asked for.
	Checksums []Checksum
	// Parts are the numbers and sizes of the parts that a multipart upload had, nil for
	// others.
	Parts []Piece
}

// Piece is a part of a finished multipart upload.
type Piece struct {
	Number int
	Size   int64
}

// Conditions are those of RFC 9110; empty fields ask for nothing. ETags are lists as
// headers have them, with or without quotes, and "*".
type Conditions struct {
	IfMatch, IfNoneMatch               string
	IfModifiedSince, IfUnmodifiedSince time.Time
}

// PutInput is an object to be written.
type PutInput struct {
	Bucket, Key string
	// Body is read to its end. Its errors end the Put, and nothing is stored.
	Body io.Reader
	// Size is how many bytes Body has, below 0: unknown.
	Size     int64
	Headers  Headers
	Metadata map[string]string
	// Conditions are evaluated when the object becomes visible, in the same
	// transaction: of two writers with IfNoneMatch "*" one wins. IfModifiedSince and
	// IfUnmodifiedSince don't apply to writes.
	Conditions Conditions
	// Verify, if any, is told what was read when Body has ended, before the object
	// becomes visible. Its error ends the Put, is returned wrapped, and nothing is
	// stored. It may set Object.Checksums.
	Verify func(*Object, Sums) error
}

// Sums are digests of a whole body.
type Sums struct {
	MD5    [16]byte
	SHA256 [32]byte
}

// GetInput is an object to be read.
type GetInput struct {
	Bucket, Key string
	Range       Range
	Conditions  Conditions
}

// Range is a part of an object. The zero value is all of it.
type Range struct {
	// Part, if not 0, is part number Part of a multipart upload; an object without
	// parts has one. The other fields are not looked at then.
	Part int
	// Set tells that From and To, or Last, are.
	Set bool
	// From … To are the first and the last byte; To below 0: to the end.
	From, To int64
	// Last, if above 0, asks for the last so many bytes instead of From and To.
	Last int64
}

// Reader gives the bytes of an object, or of a range of it. It is to be closed. One
// goroutine uses it. No byte is given that hasn't passed its strip's checksum; a whole
// read of a plain object is also checked against its SHA-256, and then the last segment
// is held back until that is done (ErrDamaged).
type Reader struct {
	Object
	// Offset and Length are the bytes that are given: all of them without a range.
	Offset, Length int64

	body *reading
}

// ListInput asks for the objects of a bucket.
type ListInput struct {
	Bucket    string
	Prefix    string
	Delimiter string
	// After: keys, and common prefixes, after this one only.
	After string
	// Max is the most objects and common prefixes together; 0: 1000, which is also the
	// most.
	Max int
}

// Listing is what a bucket holds, keys by ascending bytes. Objects have no Headers,
// Metadata or Parts.
type Listing struct {
	Objects  []Object
	Prefixes []string
	// More tells that there are more; Next is After of the call that gives them.
	More bool
	Next string
}

// Bucket is a bucket.
type Bucket struct {
	Name    string
	Created time.Time
}

// CopyInput is an object to be copied within the coder.
type CopyInput struct {
	FromBucket, FromKey string
	// From are the conditions on the source; a failed one is ErrPrecondition.
	From Conditions
	// To are what PutInput says. Body and Size are not looked at.
	To PutInput
	// Replace takes headers and metadata from To; else the source's stay.
	Replace bool
}

// UploadInput begins a multipart upload.
type UploadInput struct {
	Bucket, Key string
	Headers     Headers
	Metadata    map[string]string
	// Checksum is the algorithm that the client announced, if any, and Composite whether
	// the whole's is to be one of the parts' checksums.
	Checksum  string
	Composite bool
}

// Upload is a multipart upload under way.
type Upload = catalog.Upload

// UploadsInput asks for the uploads under way in a bucket.
type UploadsInput struct {
	Bucket, Prefix string
	// Uploads after this key, and of this key after this id.
	AfterKey, AfterID string
	// Max is the most; 0: 1000, which is also the most.
	Max int
}

// PartInput is a part to be written.
type PartInput struct {
	Bucket, Key, Upload string
	// Number is 1 … MaxParts. A part of the same number is replaced.
	Number int
	Body   io.Reader
	// Size is how many bytes Body has, below 0: unknown.
	Size int64
	// Verify is that of PutInput; of Object it has Size and ETag, and Checksums to set.
	Verify func(*Object, Sums) error
}

// Part is a part of an upload. Version is the coder's own.
type Part = catalog.Part

// CompleteInput makes an object of parts.
type CompleteInput struct {
	Bucket, Key, Upload string
	// Parts are Number and ETag of each, ascending.
	Parts []PartRef
	// Conditions are those of PutInput.
	Conditions Conditions
	// Verify, if any, is told the parts before the object becomes visible, inside the
	// transaction: it must be quick and not call the coder. It may set
	// Object.Checksums. Its error ends the call, and the upload stays.
	Verify func(*Object, []Part) error
}

// PartRef names a part by its number, and its ETag if not empty.
type PartRef = catalog.PartRef

// ScrubOptions say what a scrub does.
type ScrubOptions struct {
	// Repair writes what is lacking or damaged anew; else it is only counted.
	Repair bool
	// Orphans looks for blobs that nothing names, and with Repair deletes them.
	Orphans bool
	// Rate bounds the bytes read from stores a second; 0: no bound.
	Rate int64
}

// Progress is how far a scrub is.
type Progress struct {
	Versions, VersionsTotal int64
	Bytes, BytesTotal       int64 // of objects, not of blobs
}

// Report is what a scrub found. All but the first three are 0 after a scrub of stores
// that are whole.
type Report struct {
	Versions int64 `json:"versions"`
	Strips   int64 `json:"strips"`
	Bytes    int64 `json:"bytes"` // read from stores

	// Faults counts strips that were not whole, by kind (object.Kind).
	Faults map[string]int64 `json:"faults"`
	// Lacking counts blobs that were not there at all or wholly lost.
	Lacking int64 `json:"lacking"`
	// Unreachable counts blobs whose stores didn't answer: nothing is known of them.
	Unreachable int64 `json:"unreachable"`
	// Unreadable counts versions of which too few strips are whole, and Lost names up to
	// 1,000 of them, by bucket, key, upload, part and version.
	Unreadable int64  `json:"unreadable"`
	Lost       []Name `json:"lost,omitempty"`
	// Repaired counts blobs that were written anew, Failed those that could not be.
	Repaired int64 `json:"repaired"`
	Failed   int64 `json:"failed"`
	// Staged counts versions that were not in their intended coding.
	Staged int64 `json:"staged"`
	// Orphans counts blobs that nothing names, and Deleted those that were removed.
	Orphans int64 `json:"orphans"`
	Deleted int64 `json:"deleted"`
}

// Name says what a version is the content of.
type Name struct {
	// Bucket is empty if nothing names the version any more: it was overwritten or
	// deleted meanwhile.
	Bucket string `json:"bucket"`
	Key    string `json:"key"`
	// Version is the coder's id of it. The parts of an object have one each.
	Version string `json:"version"`
	// Part is the number of the part that it is, 0 for all of an object. Upload is set
	// while the upload that it is a part of is under way.
	Part   int    `json:"part,omitempty"`
	Upload string `json:"upload,omitempty"`
	// Unsure tells that some of its stores didn't answer, which may have what lacks.
	Unsure bool `json:"unsure,omitempty"`
}

// Stats are a coder's figures at an instant.
type Stats struct {
	Buckets, Objects int64
	Bytes            int64 // of objects
	Uploads          int64
	// Unintended counts object versions not in their intended coding: Staged, which
	// wait to be settled or to be coded anew, Lacking, of which blobs are to be repaired,
	// and Unseen, which after a start with another coding, or fewer stores, nobody has
	// looked at yet.
	Unintended, Staged, Lacking, Unseen int64
	// Unreadable counts versions of which too few strips are whole though all their stores
	// answered: those that the last scrub found, and those that reads have found since it
	// began. It is of this process; a scrub that finds none sets it to 0.
	Unreadable int64
	// Deletes counts blobs that wait to be deleted. Repeats of them were deleted, and are to
	// be once more when their stores can't come with them any more (chunks.Late).
	Deletes, Repeats int64
	// Backlog is how many requests wait, Connections how many of Limit are in use.
	Backlog, Connections, Limit int
	Stores                      []StoreHealth
}

// StoreHealth is what the coder thinks of a store.
type StoreHealth struct {
	Name string
	// Delay is the smoothed time that a task takes.
	Delay time.Duration
	// Failures is how many tasks in a row have failed; Dead that it is asked last.
	Failures int
	Dead     bool
	// Absent tells that it answers and has no owner marker, though the catalog says that
	// blobs are there: nothing is asked of it until the marker is back, or TakeIn says that
	// what it held is lost. An absent one is dead, too.
	Absent bool
}
