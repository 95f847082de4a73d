package catalog

import (
	"bytes"
	"context"
	"crypto/md5" //nolint:gosec // S3's etag is made of it
	"encoding/hex"
	"fmt"
	"time"
)

// PartRef is a part as the client names it. An empty ETag is any.
type PartRef struct {
	Number int
	ETag   string
}

// CompleteInput makes an upload the object of its key.
type CompleteInput struct {
	Bucket, Key, Upload string
	Parts               []PartRef
	// MinPart is the least size of all parts but the last, in bytes.
	MinPart  int64
	Modified time.Time
	If       Condition
	// Finish may change the record before it is stored: its checksums, or its etag. It
	// is called inside the transaction, as If is, and its error ends it.
	Finish func(r *Record, parts []Part) error
}

// CompleteUpload turns the parts named into the record of the key, with the upload's
// headers and metadata and the etag that S3 makes (MultipartETag), and queues the blobs
// of the other parts and of what the key held for deletion. It returns ErrNoBucket,
// ErrNoUpload, ErrPart, ErrPartOrder, ErrPartSize and what If and Finish say.
func (c *Catalog) CompleteUpload(ctx context.Context, in CompleteInput) (Record, error) {
	var r Record
	err := c.change(ctx, func(v *view) error {
		row, value, err := v.upload(in.Bucket, in.Key, in.Upload)
		if err != nil {
			return err
		}
		u, err := decodeUpload(in.Bucket, in.Key, in.Upload, value)
		if err != nil {
			return err
		}
		named, err := v.named(row, &in)
		if err != nil {
			return err
		}
		if r, err = assemble(&u, &in, named); err != nil {
			return err
		}
		if err := v.replace(in.Bucket, in.Key, in.If); err != nil {
			return err
		}
		v.remove(uploads, row)
		if err := v.endParts(row, named); err != nil {
			return err
		}
		v.putRecord(in.Bucket, &r, true)
		return nil
	})
	if err != nil {
		return Record{}, err
	}
	return r, nil
}

// named finds the parts that the client names.
func (v *view) named(row []byte, in *CompleteInput) ([]Part, error) {
	if len(in.Parts) == 0 {
		return nil, fmt.Errorf("%w: none is named", ErrPart)
	}
	list := make([]Part, 0, min(len(in.Parts), maxPart))
	for i, ref := range in.Parts {
		if i > 0 && ref.Number <= in.Parts[i-1].Number {
			return nil, fmt.Errorf("%w: %d after %d", ErrPartOrder, ref.Number, in.Parts[i-1].Number)
		}
		if ref.Number < 1 || ref.Number > maxPart {
			return nil, fmt.Errorf("%w: %d", ErrPart, ref.Number)
		}
		value := v.get(parts, partKey(row, ref.Number))
		if value == nil {
			return nil, fmt.Errorf("%w: %d", ErrPart, ref.Number)
		}
		p, err := decodePart(ref.Number, value)
		if err != nil {
			return nil, err
		}
		if ref.ETag != "" && ref.ETag != p.ETag {
			return nil, fmt.Errorf("%w: %d with etag %s", ErrPart, ref.Number, ref.ETag)
		}
		if i < len(in.Parts)-1 && p.Size < in.MinPart {
			return nil, fmt.Errorf("%w: %d has %d bytes", ErrPartSize, ref.Number, p.Size)
		}
		list = append(list, p)
	}
	return list, nil
}

// assemble makes the record.
func assemble(u *Upload, in *CompleteInput, named []Part) (Record, error) {
	r := Record{
		Key: in.Key, ETag: MultipartETag(named), Modified: in.Modified,
		Headers: u.Headers, Metadata: u.Metadata, Parts: make([]Piece, len(named)),
	}
	for i, p := range named {
		r.Parts[i] = Piece{p.Version, p.Size, p.Number}
		r.Size += p.Size
	}
	size, pieces := r.Size, r.Parts
	if in.Finish != nil {
		if err := in.Finish(&r, named); err != nil {
			return Record{}, err
		}
	}
	r.Key, r.Size, r.Parts = in.Key, size, pieces
	return r, r.validate()
}

// endParts removes the rows of all parts, and the versions of those that aren't named.
func (v *view) endParts(row []byte, named []Part) error {
	return v.eachPart(row, 0, func(key []byte, p Part) (bool, error) {
		v.remove(parts, bytes.Clone(key))
		if len(named) > 0 && named[0].Number == p.Number {
			named = named[1:]
			return true, nil
		}
		return true, v.dropVersion(p.Version)
	})
}

// MultipartETag is what S3 makes of the parts' etags: the MD5 of their MD5s, and how many
// there are. An etag that is no MD5 in hex counts as its text.
func MultipartETag(parts []Part) string {
	sum := md5.New() //nolint:gosec // as S3 has it
	for _, p := range parts {
		b, err := hex.DecodeString(p.ETag)
		if err != nil {
			b = []byte(p.ETag)
		}
		_, _ = sum.Write(b)
	}
	return fmt.Sprintf("%x-%d", sum.Sum(nil), len(parts))
}
