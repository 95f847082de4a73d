package shipping

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"

	"penstock/consumers/executor/coder/catalog"
	"penstock/consumers/executor/coder/field"
)

// A blob is "PNSC", the format, the kind, the coder and the instance as their length and
// bytes, the term and three numbers of the kind's own, the body, and the SHA-256 of all
// before it. Numbers are unsigned varints.
const (
	blobMagic  = "PNSC"
	blobFormat = 1
	// maxBlob is the most bytes of a blob that is read: a batch holds one change at
	// least, however long.
	maxBlob = 512 << 20
)

type kind byte

const (
	kindOwner    kind = 'o'
	kindLog      kind = 'l' // first, last; changes
	kindPart     kind = 'p' // from, part; rows
	kindSnapshot kind = 's' // from, until, parts
)

// blob is what a blob says.
type blob struct {
	kind    kind
	id      catalog.Identity
	numbers [3]uint64
	body    []byte
}

// seal encodes a blob.
func (b blob) seal() []byte {
	out := make([]byte, 0, len(b.body)+len(b.id.Coder)+len(b.id.Instance)+96)
	out = append(append(out, blobMagic...), blobFormat, byte(b.kind))
	out = field.AppendText(field.AppendText(out, b.id.Coder), b.id.Instance)
	out = binary.AppendUvarint(out, uint64(b.id.Term))
	for _, n := range b.numbers {
		out = binary.AppendUvarint(out, n)
	}
	return seal(append(out, b.body...))
}

func seal(b []byte) []byte {
	sum := sha256.Sum256(b)
	return append(b, sum[:]...)
}

// unseal reads a blob of a kind. The error names it: ErrTorn or ErrFormat.
func unseal(name string, want kind, raw []byte) (blob, error) {
	const head = len(blobMagic) + 2
	if len(raw) < head+sha256.Size || string(raw[:len(blobMagic)]) != blobMagic {
		return blob{}, fmt.Errorf("%w: %s: no blob of a log begins so", ErrTorn, name)
	}
	body, sum := raw[:len(raw)-sha256.Size], raw[len(raw)-sha256.Size:]
	if sha256.Sum256(body) != [sha256.Size]byte(sum) {
		return blob{}, fmt.Errorf("%w: %s: checksum", ErrTorn, name)
	}
	if format := body[head-2]; format != blobFormat {
		return blob{}, fmt.Errorf("%w: %s: %d", ErrFormat, name, format)
	}
	b := blob{kind: kind(body[head-1])}
	if b.kind != want {
		return blob{}, fmt.Errorf("%w: %s: kind %q, not %q", ErrTorn, name, b.kind, want)
	}
	r := field.Reader{Rest: body[head:]}
	b.id.Coder, b.id.Instance = r.Text("coder", len(body)), r.Text("instance", len(body))
	b.id.Term = uint32(r.Number("term", math.MaxUint32)) //nolint:gosec // bounded
	for i := range b.numbers {
		b.numbers[i] = r.Number("number", math.MaxUint64)
	}
	if fault := r.Fault(); fault != "" {
		return blob{}, fmt.Errorf("%w: %s: %s", ErrTorn, name, fault)
	}
	b.body = r.Rest
	return b, nil
}

// changes reads the body of a log blob, which must hold exactly what its numbers say.
func (b blob) changes(name string) ([]catalog.Change, error) {
	var list []catalog.Change
	next := b.numbers[0]
	for rest := b.body; len(rest) > 0; next++ {
		c, after, err := catalog.ReadChange(rest)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrTorn, name, err)
		}
		if c.Seq != next {
			return nil, fmt.Errorf("%w: %s: change %d, not %d", ErrTorn, name, c.Seq, next)
		}
		list, rest = append(list, c), after
	}
	if next == b.numbers[0] || next != b.numbers[1]+1 {
		return nil, fmt.Errorf("%w: %s: changes up to %d", ErrTorn, name, next-1)
	}
	return list, nil
}

// rows reads the body of a part of a snapshot.
func (b blob) rows(name string) ([]catalog.Row, error) {
	var list []catalog.Row
	for rest := b.body; len(rest) > 0; {
		r, after, err := catalog.ReadRow(rest)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrTorn, name, err)
		}
		list, rest = append(list, r), after
	}
	return list, nil
}
