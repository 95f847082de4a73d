package object

import (
	"crypto/md5" //nolint:gosec // S3 clients compare ETags, which are MD5.
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"
)

// Encoder codes one version, segment by segment. It keeps N/K times a segment of
// memory and allocates nothing per segment once it has it. One goroutine uses it.
type Encoder struct {
	coding   Coding
	segment  int64
	version  Version
	identity uint64
	slab     slab
	ahead    [1]byte
	pending  bool // ahead holds the byte that follows the last segment
	ended    bool
	size     int64
	expected int64
	sha, md5 hash.Hash
}

// NewEncoder makes an encoder of a coding in segments of so many bytes; 0 stands for
// DefaultSegment. It returns ErrCoding for what there isn't.
func NewEncoder(c Coding, segment int64) (*Encoder, error) {
	if segment == 0 {
		segment = DefaultSegment
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if err := c.shape(0, segment).Validate(); err != nil {
		return nil, err
	}
	return &Encoder{coding: c, segment: segment, slab: slab{layout: c.Layout}, sha: sha256.New(), md5: md5.New(), ended: true}, nil //nolint:gosec // see the import
}

// Reset begins a version of an object. The key and the version id are in every frame:
// the pair must be used for one encoding only. It returns ErrDocument for a key or id
// that a document can't hold.
func (e *Encoder) Reset(key, id string) error {
	if err := checkName("key", key, maxKey); err != nil {
		return err
	}
	if err := checkName("version id", id, maxID); err != nil {
		return err
	}
	sums := e.version.Sums[:0]
	e.version = Version{Key: key, ID: id, Coding: e.coding, Sums: sums}
	e.identity = identity(key, id)
	e.pending, e.ended, e.size, e.expected = false, false, 0, -1
	e.sha.Reset()
	e.md5.Reset()
	return nil
}

// Expect says how many bytes the version will have, as a client's Content-Length does;
// below 0 is unknown. It is a hint: where it is right strips are read into their places,
// where it is wrong they are moved there. Reset forgets it.
func (e *Encoder) Expect(size int64) { e.expected = size }

// Next reads and codes the next segment and says how it lies: the frames of its chunks
// are had with Frames until the next call. The last segment is followed by io.EOF, an
// empty object has that at once. Any other error is the reader's, or ErrTooLarge: the
// version is to be given up then. The shape's Size is what was read so far, and right
// for every offset of this segment.
func (e *Encoder) Next(r io.Reader) (Shape, error) {
	if e.ended {
		if e.version.Key == "" {
			return Shape{}, fmt.Errorf("%w: encoder without a version", ErrState)
		}
		return Shape{}, io.EOF
	}
	s, err := e.next(r)
	if err != nil && !errors.Is(err, io.EOF) {
		e.ended, e.version.Key = true, ""
	}
	return s, err
}

func (e *Encoder) next(r io.Reader) (Shape, error) {
	index := len(e.version.Sums) / e.coding.N
	if (index+1)*e.coding.N > MaxStrips {
		return Shape{}, fmt.Errorf("%w: more than %d segments of %d bytes", ErrTooLarge, index, e.segment)
	}
	plan := e.plan(e.segment)
	if e.expected > e.size && e.expected-e.size < e.segment {
		plan = e.plan(e.expected - e.size)
	}
	e.slab.fit(plan.N, plan.StripBytes(index))
	n, err := e.read(r, 0, int(plan.Size-e.size))
	if err == nil && !e.ended && plan.Size-e.size < e.segment { // more than was expected
		plan = e.plan(e.segment)
		e.slab.move(n, plan.N, plan.StripBytes(index))
		n, err = e.read(r, n, int(e.segment))
	}
	if err != nil {
		return Shape{}, err
	}
	if n == 0 {
		return Shape{}, io.EOF
	}
	e.size += int64(n)
	s := e.plan(0)
	if strip := s.StripBytes(index); s.N != plan.N || s.K != plan.K || strip != plan.StripBytes(index) {
		e.slab.move(n, s.N, strip)
	}
	e.slab.pad(s.K, n)
	e.digest(n)
	if err := encode(&e.slab, s); err != nil {
		return Shape{}, fmt.Errorf("encode segment %d: %w", index, err)
	}
	e.version.Sums = e.slab.seal(e.version.Sums, e.identity, index)
	return s, nil
}

// plan is the shape if so many bytes more are all there is.
func (e *Encoder) plan(more int64) Shape { return e.coding.shape(e.size+more, e.segment) }

// read fills the data strips from byte n on until they hold limit bytes, and looks one
// byte further to know whether this is the end: an empty last segment must not exist.
// Only a plain io.EOF is an end; io.ReadFull would hide a body that was cut off behind
// its own io.ErrUnexpectedEOF.
func (e *Encoder) read(r io.Reader, n, limit int) (int, error) {
	if e.pending {
		e.slab.rest(n, limit)[0] = e.ahead[0]
		e.pending = false
		n++
	}
	for idle := 0; idle < maxIdleReads; idle++ {
		into := e.ahead[:]
		if n < limit {
			into = e.slab.rest(n, limit)
		}
		m, err := r.Read(into)
		if n == limit {
			e.pending = m > 0
		} else {
			n += m
		}
		switch {
		case err == nil || err == io.EOF:
		case errors.Is(err, io.EOF): // a wrapped io.EOF is no end, nor must it look like one
			return n, fmt.Errorf("read: %w: %v", io.ErrUnexpectedEOF, err) //nolint:errorlint // see above
		default:
			return n, fmt.Errorf("read: %w", err)
		}
		if atEnd := err != nil; atEnd || e.pending {
			// The byte ahead is a segment of its own, and then comes the end again.
			e.ended = atEnd && !e.pending
			return n, nil
		}
		if m > 0 {
			idle = -1
		}
	}
	return n, fmt.Errorf("read: %w", io.ErrNoProgress)
}

// maxIdleReads is how often in a row a reader may give nothing and no error.
const maxIdleReads = 100

// digest adds the n bytes in the data strips to the hashes of the whole.
func (e *Encoder) digest(n int) {
	for at := 0; at < n; {
		b := e.slab.rest(at, n)
		e.sha.Write(b)
		e.md5.Write(b)
		at += len(b)
	}
}

// encode makes the other strips of a segment from its data strips.
func encode(b *slab, s Shape) error {
	if s.K == 1 {
		for i := 1; i < s.N; i++ {
			copy(b.strips[i], b.strips[0])
		}
		return nil
	}
	c, err := coderOf(s.N, s.K)
	if err != nil {
		return err
	}
	return c.Encode(b.strips)
}

// Ended tells whether the segment that Next coded last is the object's last: if it is
// also the first, the version may be written in more blobs, see Shape.Write.
func (e *Encoder) Ended() bool { return e.ended }

// Blob are the bytes of the segment that Next coded in a blob of a version of shape s,
// until the next call of Next. The bytes of frames don't depend on how they are cut into
// blobs.
func (e *Encoder) Blob(s Shape, blob int) []byte { return e.Frames(s.Strips(blob)) }

// Frames are the bytes to store for count strips from first of the segment that Next
// coded, until the next call of Next. They are the chunk that Shape.Run says.
func (e *Encoder) Frames(first, count int) []byte { return e.slab.frames(first, count) }

// Info is what a version's document says beside its coding.
type Info struct {
	// Time is when the version was written; whole microseconds are kept.
	Time time.Time
	// ETag is what clients see; empty stands for the MD5 in hex, as S3 has it for
	// objects that weren't sent in parts.
	ETag        string
	ContentType string
	// Metadata are the client's own, by name as the API gives them.
	Metadata map[string]string
	// Cut is the version's Shape.Cut; 0 stands for the one that is meant.
	Cut int
	// Places is where each blob lies, Shape.Blobs of them in order, those that haven't
	// landed as the zero Place.
	Places []Place
}

// Finish gives the version once Next has said io.EOF, else ErrState. It returns
// ErrDocument for what a document can't hold; it may be called again then. The version
// is the caller's own.
func (e *Encoder) Finish(info Info) (*Version, error) {
	if !e.ended || e.version.Key == "" {
		return nil, fmt.Errorf("%w: Finish before the end of the object", ErrState)
	}
	v := e.version
	v.Shape = e.coding.shape(e.size, e.segment)
	if info.Cut != 0 {
		v.Shape.Cut = info.Cut
	}
	v.Sums = append([]uint64(nil), e.version.Sums...)
	e.sha.Sum(v.SHA256[:0])
	e.md5.Sum(v.MD5[:0])
	v.Time = info.Time.UTC().Truncate(time.Microsecond)
	v.ETag, v.ContentType = info.ETag, info.ContentType
	if v.ETag == "" {
		v.ETag = hex.EncodeToString(v.MD5[:])
	}
	if len(info.Metadata) > 0 {
		v.Metadata = make(map[string]string, len(info.Metadata))
		for name, value := range info.Metadata {
			v.Metadata[name] = value
		}
	}
	v.Places = append([]Place(nil), info.Places...)
	if err := v.Validate(); err != nil {
		return nil, err
	}
	return &v, nil
}
