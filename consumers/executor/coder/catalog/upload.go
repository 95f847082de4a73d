package catalog

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"penstock/consumers/executor/coder/field"
	"penstock/consumers/executor/coder/object"
)

// Upload is one under way.
type Upload struct {
	Bucket, Key string
	// ID is of the caller's choosing. Uploads of one key are listed by id, so ids
	// that ascend with time list as S3 does.
	ID       string
	Created  time.Time
	Headers  Headers
	Metadata map[string]string
	// Checksum is the algorithm asked for, if any, and Composite its type.
	Checksum  string
	Composite bool
}

// Part of an upload.
type Part struct {
	// Number is from 1 to 10000.
	Number    int
	Size      int64
	ETag      string
	Modified  time.Time
	Checksums []Checksum
	Version   string
}

func (u *Upload) encode() []byte {
	b := field.AppendMap(appendHeaders(field.AppendTime([]byte{valueFormat}, u.Created), &u.Headers), u.Metadata)
	return appendBool(field.AppendText(b, u.Checksum), u.Composite)
}

func decodeUpload(bucket, key, id string, value []byte) (Upload, error) {
	f := read(value)
	u := Upload{Bucket: bucket, Key: key, ID: id, Created: f.Time("created")}
	u.Headers, u.Metadata = f.headers(), f.Map("metadata", maxFields, maxMetadata)
	u.Checksum, u.Composite = f.Text("checksum", maxText), f.bool("checksum")
	return u, f.end("upload " + id)
}

func (p *Part) encode() []byte {
	b := field.AppendTime(field.AppendText(appendNumber([]byte{valueFormat}, p.Size), p.ETag), p.Modified)
	return field.AppendText(appendChecksums(b, p.Checksums), p.Version)
}

func decodePart(number int, value []byte) (Part, error) {
	f := read(value)
	p := Part{Number: number, Size: f.size("size"), ETag: f.Text("etag", maxText), Modified: f.Time("modified")}
	p.Checksums, p.Version = f.checksums(), f.Text("version", maxID)
	return p, f.end("part")
}

// CreateUpload returns ErrNoBucket, ErrTaken, ErrInput.
func (c *Catalog) CreateUpload(ctx context.Context, u Upload) error {
	for _, err := range [...]error{
		checkName("key", u.Key, maxKey), checkName("upload", u.ID, maxID), checkTime(u.Created),
		u.Headers.validate(), checkMetadata(u.Metadata), checkText("checksum", u.Checksum),
	} {
		if err != nil {
			return err
		}
	}
	return c.change(ctx, func(v *view) error {
		if err := v.bucket(u.Bucket); err != nil {
			return err
		}
		row := join(u.Bucket, u.Key, u.ID)
		if v.get(uploads, row) != nil {
			return fmt.Errorf("%w: upload %s", ErrTaken, u.ID)
		}
		v.put(uploads, row, u.encode())
		return nil
	})
}

// upload finds an upload's row. It returns ErrNoBucket, ErrNoUpload.
func (v *view) upload(bucket, key, id string) (row, value []byte, err error) {
	if err := v.bucket(bucket); err != nil {
		return nil, nil, err
	}
	if checkName("key", key, maxKey) == nil && checkName("upload", id, maxID) == nil {
		row = join(bucket, key, id)
		value = v.get(uploads, row)
	}
	if value == nil {
		return nil, nil, fmt.Errorf("%w: %s of %s/%s", ErrNoUpload, id, bucket, key)
	}
	return row, value, nil
}

// Upload returns ErrNoBucket, ErrNoUpload.
func (c *Catalog) Upload(bucket, key, id string) (u Upload, err error) {
	err = c.read(func(v *view) error {
		_, value, err := v.upload(bucket, key, id)
		if err == nil {
			u, err = decodeUpload(bucket, key, id, value)
		}
		return err
	})
	return u, err
}

// PartInput makes a version a part of an upload.
type PartInput struct {
	Bucket, Key, Upload string
	// Part has all but Version.
	Part    Part
	Version *object.Version
	Intents []string
	// Unwritten is that of PutInput.
	Unwritten []object.Place
	Rest      Rest
}

func (p *Part) validate(version *object.Version) error {
	if p.Number < 1 || p.Number > maxPart {
		return fmt.Errorf("%w: part %d", ErrInput, p.Number)
	}
	if p.Size < 0 || version.Shape.Size != p.Size {
		return fmt.Errorf("%w: version of %d bytes for a part of %d", ErrInput, version.Shape.Size, p.Size)
	}
	if err := checkTime(p.Modified); err != nil {
		return err
	}
	p.Modified = micros(p.Modified)
	if err := checkText("etag", p.ETag); err != nil {
		return err
	}
	return checkChecksums(p.Checksums)
}

// PutPart replaces a part of that number, whose blobs are queued for deletion. It returns
// ErrNoBucket, ErrNoUpload and what Put does.
func (c *Catalog) PutPart(ctx context.Context, in PartInput) error {
	doc, err := document(in.Version)
	if err != nil {
		return err
	}
	part := in.Part
	if err := part.validate(in.Version); err != nil {
		return err
	}
	part.Version = in.Version.ID
	return c.change(ctx, func(v *view) error {
		row, _, err := v.upload(in.Bucket, in.Key, in.Upload)
		if err != nil {
			return err
		}
		key := partKey(row, part.Number)
		if old := v.get(parts, key); old != nil {
			p, err := decodePart(part.Number, old)
			if err != nil {
				return err
			}
			if err := v.dropVersion(p.Version); err != nil {
				return err
			}
		}
		if err := v.addVersion(in.Version, doc, in.Intents, in.Unwritten, in.Rest); err != nil {
			return err
		}
		v.put(parts, key, part.encode())
		return nil
	})
}

// eachPart calls f for the parts of the upload with this row, after a number, until it
// says no.
func (v *view) eachPart(row []byte, after int, f func(key []byte, p Part) (bool, error)) error {
	within := partKey(row, 0)
	within = within[:len(within)-2]
	cursor := v.cursor(parts)
	for key, value := cursor.Seek(partKey(row, after+1)); len(key) == len(within)+2 && bytes.HasPrefix(key, within); key, value = cursor.Next() {
		p, err := decodePart(int(binary.BigEndian.Uint16(key[len(within):])), value)
		if err != nil {
			return err
		}
		if more, err := f(key, p); err != nil || !more {
			return err
		}
	}
	return nil
}

// Parts lists up to limit parts with numbers after another, ascending, and tells whether
// there are more. It returns ErrNoBucket, ErrNoUpload.
func (c *Catalog) Parts(bucket, key, upload string, after, limit int) (list []Part, more bool, err error) {
	err = c.read(func(v *view) error {
		row, _, err := v.upload(bucket, key, upload)
		if err != nil {
			return err
		}
		return v.eachPart(row, min(max(after, 0), maxPart), func(_ []byte, p Part) (bool, error) {
			if len(list) >= limit {
				more = limit > 0
				return false, nil
			}
			list = append(list, p)
			return true, nil
		})
	})
	return list, more, err
}

// AbortUpload queues the blobs of all parts for deletion. It returns ErrNoBucket,
// ErrNoUpload.
func (c *Catalog) AbortUpload(ctx context.Context, bucket, key, id string) error {
	return c.change(ctx, func(v *view) error {
		row, _, err := v.upload(bucket, key, id)
		if err != nil {
			return err
		}
		v.remove(uploads, row)
		return v.eachPart(row, 0, func(key []byte, p Part) (bool, error) {
			v.remove(parts, bytes.Clone(key))
			return true, v.dropVersion(p.Version)
		})
	})
}
