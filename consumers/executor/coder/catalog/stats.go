package catalog

import (
	"fmt"
	"math"
)

// Stats are kept with every change.
type Stats struct {
	Buckets, Objects int64
	// Bytes of all objects.
	Bytes int64
	// Versions of objects and parts.
	Versions int64
	// Staged versions, versions that lack blobs, and the blobs they lack.
	Staged, Lacking, LackingBlobs int64
	// Deletes are blobs to delete, Intents the open ones.
	Deletes, Intents int64
	// Uploads under way, their parts and the parts' bytes.
	Uploads, Parts, PartBytes int64
	// Repeats are blobs that were deleted and are to be deleted once more.
	Repeats int64
}

// Stats of the last commit.
func (c *Catalog) Stats() Stats { return *c.stats.Load() }

// count adds what a row counts for, times sign. Stats are a sum over rows and nothing
// else, so that a change's rows give the new ones, and Check can count them again.
func (s *Stats) count(t Table, value []byte, sign int64) error {
	if value == nil {
		return nil
	}
	switch t {
	case buckets:
		s.Buckets += sign
	case records:
		r, _, err := decodeListed(value)
		if err != nil {
			return err
		}
		s.Objects += sign
		s.Bytes += sign * r.Size
	case versions:
		s.Versions += sign
	case rests:
		r, err := decodeRest(value)
		if err != nil {
			return err
		}
		if r.Staged {
			s.Staged += sign
		}
		if len(r.Lacking) > 0 {
			s.Lacking += sign
			s.LackingBlobs += sign * int64(len(r.Lacking))
		}
	case intents:
		s.Intents += sign
	case deletes:
		s.Deletes += sign
	case uploads:
		s.Uploads += sign
	case parts:
		p, err := decodePart(0, value)
		if err != nil {
			return err
		}
		s.Parts += sign
		s.PartBytes += sign * p.Size
	case repeats:
		s.Repeats += sign
	}
	return nil
}

// firstStats is how many figures the state had in its first form.
const firstStats = 12

func (s *Stats) all() [13]*int64 {
	return [...]*int64{
		&s.Buckets, &s.Objects, &s.Bytes, &s.Versions, &s.Staged, &s.Lacking, &s.LackingBlobs,
		&s.Deletes, &s.Intents, &s.Uploads, &s.Parts, &s.PartBytes, &s.Repeats,
	}
}

// encodeState gives the row that every commit writes.
func encodeState(seq uint64, s Stats) []byte {
	b := appendNumber([]byte{valueFormat}, seq)
	for _, n := range s.all() {
		b = appendNumber(b, *n)
	}
	return b
}

func decodeState(b []byte) (seq uint64, s Stats, err error) {
	f := read(b)
	seq = f.Number("sequence", math.MaxInt64)
	for i, n := range s.all() {
		if i == firstStats && len(f.Rest) == 0 {
			break // written before there were repeats
		}
		*n = int64(f.Number("stats", math.MaxInt64)) //nolint:gosec // bounded
	}
	if err := f.end("state"); err != nil {
		return 0, Stats{}, fmt.Errorf("meta: %w", err)
	}
	return seq, s, nil
}
