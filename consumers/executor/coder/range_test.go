package coder

import (
	"errors"
	"math"
	"testing"
)

// TestRangeIn: which bytes of ten a range is.
func TestRangeIn(t *testing.T) {
	t.Parallel()
	plain := Object{Size: 10}
	parts := Object{Size: 10, Parts: []Piece{{Number: 2, Size: 7}, {Number: 5, Size: 3}}}
	for _, x := range []struct {
		of             Object
		r              Range
		offset, length int64
		err            error
	}{
		{plain, Range{}, 0, 10, nil},
		{plain, Range{Set: true, From: 2, To: 4}, 2, 3, nil},
		{plain, Range{Set: true, From: 9, To: 9}, 9, 1, nil},
		{plain, Range{Set: true, From: 9, To: -1}, 9, 1, nil},
		{plain, Range{Set: true, To: math.MaxInt64}, 0, 10, nil},
		{plain, Range{Set: true, From: 3, To: math.MaxInt64}, 3, 7, nil},
		{plain, Range{Set: true, From: 10, To: -1}, 0, 0, ErrBadRange},
		{plain, Range{Set: true, From: math.MaxInt64, To: -1}, 0, 0, ErrBadRange},
		{plain, Range{Set: true, From: math.MaxInt64, To: math.MaxInt64}, 0, 0, ErrBadRange},
		{plain, Range{Set: true, Last: 3}, 7, 3, nil},
		{plain, Range{Set: true, Last: math.MaxInt64}, 0, 10, nil},
		{Object{}, Range{}, 0, 0, nil},
		{Object{}, Range{Set: true, To: -1}, 0, 0, ErrBadRange},
		{Object{}, Range{Set: true, Last: 3}, 0, 0, ErrBadRange},
		{plain, Range{Part: 1}, 0, 10, nil},
		{plain, Range{Part: 2}, 0, 0, ErrPart},
		{parts, Range{Part: 2}, 0, 7, nil},
		{parts, Range{Part: 5}, 7, 3, nil},
		{parts, Range{Part: 1}, 0, 0, ErrPart},
	} {
		offset, length, err := x.r.In(&x.of)
		if offset != x.offset || length != x.length || !errors.Is(err, x.err) {
			t.Errorf("%+v of %+v: %d from %d, %v", x.r, x.of, length, offset, err)
		}
	}
}
