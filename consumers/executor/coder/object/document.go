package object

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"penstock/consumers/executor/coder/field"
)

// A document is "PNSV", the schema version (one byte), the fields below, and the
// SHA-256 of all before it. Whole numbers are unsigned varints of least length, texts
// are their length and bytes, checksums 8 bytes little endian:
//
//	key, version id, time (µs since 1970, zig-zag), coding (layout, N, K),
//	shape (layout, N, K, cut, segment, size), SHA-256, MD5, etag, content type,
//	metadata (count, then name and value by ascending name),
//	places (count, then store and key, both empty where a blob hasn't landed),
//	checksums (their number follows from the shape)
//
// Every version has exactly one document. Fields are only ever added under a new schema
// version; decoders of the older ones stay.
const (
	documentMagic  = "PNSV"
	documentSchema = 1
)

// MarshalBinary gives the document. It returns what Validate does.
func (v *Version) MarshalBinary() ([]byte, error) { return v.AppendBinary(nil) }

// AppendBinary appends the document to b. It returns what Validate does, and b.
func (v *Version) AppendBinary(b []byte) ([]byte, error) {
	if err := v.Validate(); err != nil {
		return b, err
	}
	start := len(b)
	b = slices.Grow(b, 512+8*len(v.Sums))
	b = append(b, documentMagic...)
	b = append(b, documentSchema)
	b = field.AppendText(b, v.Key)
	b = field.AppendText(b, v.ID)
	b = field.AppendTime(b, v.Time)
	for _, n := range [...]int64{
		int64(v.Coding.Layout), int64(v.Coding.N), int64(v.Coding.K),
		int64(v.Shape.Layout), int64(v.Shape.N), int64(v.Shape.K), int64(v.Shape.Cut), v.Shape.Segment, v.Shape.Size,
	} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	b = append(b, v.SHA256[:]...)
	b = append(b, v.MD5[:]...)
	b = field.AppendText(b, v.ETag)
	b = field.AppendText(b, v.ContentType)
	b = field.AppendMap(b, v.Metadata)
	b = binary.AppendUvarint(b, uint64(len(v.Places)))
	for _, p := range v.Places {
		b = field.AppendText(field.AppendText(b, p.Store), p.Key)
	}
	for _, sum := range v.Sums {
		b = binary.LittleEndian.AppendUint64(b, sum)
	}
	sum := sha256.Sum256(b[start:])
	return append(b, sum[:]...), nil
}

// Parse reads a document. It returns ErrDocument for what is damaged, not canonical or
// out of bounds, and ErrSchema for a whole document of another schema version. Nothing
// that the bytes claim is believed before it is checked against their length.
func Parse(b []byte) (*Version, error) {
	const head = len(documentMagic) + 1
	switch {
	case len(b) > MaxDocument:
		return nil, fmt.Errorf("%w: %d bytes", ErrDocument, len(b))
	case len(b) < head+sha256.Size || string(b[:len(documentMagic)]) != documentMagic:
		return nil, fmt.Errorf("%w: no document begins so", ErrDocument)
	}
	body, sum := b[:len(b)-sha256.Size], b[len(b)-sha256.Size:]
	if sha256.Sum256(body) != [sha256.Size]byte(sum) {
		return nil, fmt.Errorf("%w: checksum", ErrDocument)
	}
	if schema := body[head-1]; schema != documentSchema {
		return nil, fmt.Errorf("%w: %d", ErrSchema, schema)
	}
	r := field.Reader{Rest: body[head:]}
	v := parsed(&r)
	r.End()
	if fault := r.Fault(); fault != "" {
		return nil, fmt.Errorf("%w: %s", ErrDocument, fault)
	}
	if err := v.Validate(); err != nil {
		return nil, err
	}
	return v, nil
}

// parsed takes the fields of a version; they are a version's if there is no fault.
func parsed(p *field.Reader) *Version {
	v := &Version{Key: p.Text("key", maxKey), ID: p.Text("version id", maxID)}
	v.Time = p.Time("time")
	v.Coding = Coding{Layout(p.Number("layout", math.MaxUint8)), p.Count("N", SharedStrips), p.Count("K", SharedStrips)}
	v.Shape = Shape{
		Layout: Layout(p.Number("layout", math.MaxUint8)), N: p.Count("N", SharedStrips), K: p.Count("K", SharedStrips),
		Cut:     p.Count("cut", SharedStrips),
		Segment: int64(p.Number("segment", MaxSegment)), Size: int64(p.Number("size", MaxStrips*MaxSegment)),
	}
	copy(v.SHA256[:], p.Take("SHA-256", len(v.SHA256)))
	copy(v.MD5[:], p.Take("MD5", len(v.MD5)))
	v.ETag, v.ContentType = p.Text("etag", maxETag), p.Text("content type", maxContentType)
	v.Metadata = p.Map("metadata", maxFields, maxMetadata)
	for range p.Count("places", SharedStrips) {
		v.Places = append(v.Places, Place{p.Text("store", maxStore), p.Text("blob key", maxKey)})
	}
	if p.Fault() != "" {
		return v
	}
	if err := v.Shape.Validate(); err != nil {
		p.Fail(err.Error())
		return v
	}
	n := v.Shape.Segments() * v.Shape.N
	b := p.Take("checksums", 8*n)
	if p.Fault() == "" && n > 0 {
		v.Sums = make([]uint64, n)
		for i := range v.Sums {
			v.Sums[i] = binary.LittleEndian.Uint64(b[8*i:])
		}
	}
	return v
}
