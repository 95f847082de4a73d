package object

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"
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
	b = appendText(b, v.Key)
	b = appendText(b, v.ID)
	b = binary.AppendVarint(b, v.Time.UnixMicro())
	for _, n := range [...]int64{
		int64(v.Coding.Layout), int64(v.Coding.N), int64(v.Coding.K),
		int64(v.Shape.Layout), int64(v.Shape.N), int64(v.Shape.K), int64(v.Shape.Cut), v.Shape.Segment, v.Shape.Size,
	} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	b = append(b, v.SHA256[:]...)
	b = append(b, v.MD5[:]...)
	b = appendText(b, v.ETag)
	b = appendText(b, v.ContentType)
	b = binary.AppendUvarint(b, uint64(len(v.Metadata)))
	names := make([]string, 0, len(v.Metadata))
	for name := range v.Metadata {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		b = appendText(appendText(b, name), v.Metadata[name])
	}
	b = binary.AppendUvarint(b, uint64(len(v.Places)))
	for _, p := range v.Places {
		b = appendText(appendText(b, p.Store), p.Key)
	}
	for _, sum := range v.Sums {
		b = binary.LittleEndian.AppendUint64(b, sum)
	}
	sum := sha256.Sum256(b[start:])
	return append(b, sum[:]...), nil
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
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
	p := parser{rest: body[head:]}
	v := p.version()
	if p.fault == "" && len(p.rest) > 0 {
		p.fail("bytes after the end")
	}
	if p.fault != "" {
		return nil, fmt.Errorf("%w: %s", ErrDocument, p.fault)
	}
	if err := v.Validate(); err != nil {
		return nil, err
	}
	return v, nil
}

// parser takes fields from the front of rest. After the first fault, which it keeps,
// all fields are zero.
type parser struct {
	rest  []byte
	fault string
}

func (p *parser) fail(what string) {
	if p.fault == "" {
		p.fault = what
	}
	p.rest = nil
}

func (p *parser) version() *Version {
	v := &Version{Key: p.text("key", maxKey), ID: p.text("version id", maxID)}
	v.Time = p.time()
	v.Coding = Coding{Layout(p.number("layout", math.MaxUint8)), p.count("N", SharedStrips), p.count("K", SharedStrips)}
	v.Shape = Shape{
		Layout: Layout(p.number("layout", math.MaxUint8)), N: p.count("N", SharedStrips), K: p.count("K", SharedStrips),
		Cut:     p.count("cut", SharedStrips),
		Segment: int64(p.number("segment", MaxSegment)), Size: int64(p.number("size", MaxStrips*MaxSegment)),
	}
	copy(v.SHA256[:], p.take("SHA-256", len(v.SHA256)))
	copy(v.MD5[:], p.take("MD5", len(v.MD5)))
	v.ETag, v.ContentType = p.text("etag", maxETag), p.text("content type", maxContentType)
	p.metadata(v)
	for range p.count("places", SharedStrips) {
		v.Places = append(v.Places, Place{p.text("store", maxStore), p.text("blob key", maxKey)})
	}
	if p.fault != "" {
		return v
	}
	if err := v.Shape.Validate(); err != nil {
		p.fail(err.Error())
		return v
	}
	n := v.Shape.Segments() * v.Shape.N
	b := p.take("checksums", 8*n)
	if p.fault == "" && n > 0 {
		v.Sums = make([]uint64, n)
		for i := range v.Sums {
			v.Sums[i] = binary.LittleEndian.Uint64(b[8*i:])
		}
	}
	return v
}

func (p *parser) metadata(v *Version) {
	last := ""
	for i := range p.count("metadata", maxFields) {
		name, value := p.text("metadata name", maxMetadata), p.text("metadata", maxMetadata)
		if i > 0 && name <= last {
			p.fail("metadata out of order")
			return
		}
		if v.Metadata == nil {
			v.Metadata = make(map[string]string)
		}
		v.Metadata[name], last = value, name
	}
}

// time is the zig-zag varint of binary.AppendVarint, of least length.
func (p *parser) time() time.Time {
	u := p.number("time", math.MaxUint64)
	return time.UnixMicro(int64(u>>1) ^ -int64(u&1)).UTC() //nolint:gosec // the inverse of zig-zag
}

func (p *parser) take(what string, n int) []byte {
	if p.fault != "" || n > len(p.rest) {
		p.fail(what + ": cut off")
		return nil
	}
	b := p.rest[:n]
	p.rest = p.rest[n:]
	return b
}

// number takes a varint of least length that is at most most.
func (p *parser) number(what string, most uint64) uint64 {
	n, length := binary.Uvarint(p.rest)
	if p.fault != "" || length <= 0 || n > most || (length > 1 && p.rest[length-1] == 0) {
		p.fail(what + ": not a number in bounds")
		return 0
	}
	p.rest = p.rest[length:]
	return n
}

func (p *parser) count(what string, most int) int { return int(p.number(what, uint64(most))) } //nolint:gosec // bounded

func (p *parser) text(what string, most int) string {
	return string(p.take(what, p.count(what, most)))
}
