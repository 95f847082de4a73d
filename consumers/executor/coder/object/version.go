package object

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"time"
	"unicode/utf8"
)

const (
	maxKey         = 1024     // bytes of a key, as S3 has it
	maxID          = 128      // bytes of a version id
	maxETag        = 128      // bytes of an ETag
	maxContentType = 1024     // bytes
	maxMetadata    = 16 << 10 // bytes of all names and values
	maxFields      = 512      // pairs of metadata
	maxStore       = 256      // bytes of a store's name

	// MaxDocument is the greatest length of an encoded version in bytes.
	MaxDocument = 8*MaxStrips + maxKey + maxID + maxETag + maxContentType + maxMetadata + maxFields*8 +
		MaxSpread*(maxStore+maxKey+8) + 1024
)

// Place is where a blob lies.
type Place struct {
	Store string // the store's name in the configuration
	Key   string // the blob's key in that store
}

// Version is what is known of one object version: all that reading it needs. It is
// stored as the document that MarshalBinary gives.
type Version struct {
	Key, ID string
	// Time is when it was written, UTC in whole microseconds.
	Time time.Time
	// Coding is how it was meant to be stored; scrub compares it with the coding in
	// force. Shape is how it lies: the same but for tiny objects.
	Coding Coding
	Shape  Shape
	// SHA256 and MD5 are of the object's bytes.
	SHA256 [sha256.Size]byte
	MD5    [16]byte
	// ETag is the text that clients see, without quotes: the MD5 in hex, or what S3
	// makes of the parts of a multipart upload.
	ETag        string
	ContentType string
	Metadata    map[string]string
	// Places has one entry a blob. The zero Place says that the blob hasn't landed: it
	// is in no store, and no chunk of it may be chosen. Those that landed are enough to
	// rebuild the others.
	Places []Place
	// Sums are the checksums of the frames, N a segment.
	Sums []uint64
}

// Validate returns ErrDocument, wrapping ErrCoding or ErrTooLarge where it is that, if
// no document can hold the version.
func (v *Version) Validate() error {
	if err := v.validateShape(); err != nil {
		return err // what follows counts blobs
	}
	for _, err := range [...]error{
		checkName("key", v.Key, maxKey),
		checkName("version id", v.ID, maxID),
		checkText("etag", v.ETag, maxETag),
		checkText("content type", v.ContentType, maxContentType),
		v.validateMetadata(),
		v.validatePlaces(),
	} {
		if err != nil {
			return err
		}
	}
	if year := v.Time.UTC().Year(); year < 1 || year > 9999 {
		return fmt.Errorf("%w: time in the year %d", ErrDocument, year)
	}
	return nil
}

func (v *Version) validateShape() error {
	if err := errors.Join(v.Coding.Validate(), v.Shape.Validate()); err != nil {
		return fmt.Errorf("%w: %w", ErrDocument, err)
	}
	// Strips may be fewer than meant, never of another layout.
	if v.Coding.Layout != v.Shape.Layout {
		return fmt.Errorf("%w: meant to be %v, is %v", ErrDocument, v.Coding.Layout, v.Shape.Layout)
	}
	if want := v.Shape.Segments() * v.Shape.N; len(v.Sums) != want {
		return fmt.Errorf("%w: %d checksums of %d strips", ErrDocument, len(v.Sums), want)
	}
	return nil
}

func (v *Version) validateMetadata() error {
	total := 0
	for name, value := range v.Metadata {
		if err := errors.Join(checkName("metadata name", name, maxMetadata), checkText("metadata", value, maxMetadata)); err != nil {
			return err
		}
		total += len(name) + len(value)
	}
	if total > maxMetadata || len(v.Metadata) > maxFields {
		return fmt.Errorf("%w: %d bytes of metadata in %d fields", ErrDocument, total, len(v.Metadata))
	}
	return nil
}

func (v *Version) validatePlaces() error {
	if len(v.Places) != v.Shape.Blobs() {
		return fmt.Errorf("%w: %d places of %d blobs", ErrDocument, len(v.Places), v.Shape.Blobs())
	}
	landed := 0
	for i, p := range v.Places {
		if p == (Place{}) {
			continue
		}
		landed++
		if err := errors.Join(checkName("store", p.Store, maxStore), checkName("blob key", p.Key, maxKey)); err != nil {
			return err
		}
		for _, q := range v.Places[:i] {
			if p == q {
				return fmt.Errorf("%w: two blobs at %s/%s", ErrDocument, p.Store, p.Key)
			}
		}
	}
	if len(v.Places) > 0 && landed < v.Shape.Cut {
		return fmt.Errorf("%w: %d blobs landed, %d rebuild the version", ErrDocument, landed, v.Shape.Cut)
	}
	return nil
}

func checkText(what, s string, most int) error {
	if len(s) > most || !utf8.ValidString(s) {
		return fmt.Errorf("%w: %s of %d bytes", ErrDocument, what, len(s))
	}
	return nil
}

func checkName(what, s string, most int) error {
	if s == "" {
		return fmt.Errorf("%w: no %s", ErrDocument, what)
	}
	return checkText(what, s, most)
}

// AsMeant tells whether the version lies as this coding would store it today, with all
// its blobs: what scrub counts down to 0. Another size of segments alone is no reason to
// code again.
func (v *Version) AsMeant(c Coding) bool {
	return v.Shape == c.shape(v.Shape.Size, v.Shape.Segment) && v.Lacking() == 0
}

// Whole checks the bytes of a whole read against the SHA-256, as an io.Writer beside
// the client's. It is for reads of everything, where it finds what strips can't show:
// that the document itself is wrong.
type Whole struct {
	hash.Hash
	want [sha256.Size]byte
}

// NewWhole begins a check of all bytes of the version.
func (v *Version) NewWhole() *Whole { return &Whole{sha256.New(), v.SHA256} }

// Err returns ErrMismatch unless exactly the object's bytes were written.
func (w *Whole) Err() error {
	if [sha256.Size]byte(w.Sum(nil)) != w.want {
		return fmt.Errorf("%w: SHA-256", ErrMismatch)
	}
	return nil
}
