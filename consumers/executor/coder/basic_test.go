package coder

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"

	"penstock/consumers/executor/coder/object"
)

// layouts are the layouts that most tests run in.
var layouts = []struct {
	layout object.Layout
	n, k   int
}{{object.Shared, 0, 0}, {object.Spread, 6, 4}, {object.Spread, 4, 2}, {object.Spread, 2, 1}}

func each(t *testing.T, f func(t *testing.T, b *bench), change func(*Options)) {
	t.Parallel()
	for _, l := range layouts {
		t.Run(fmt.Sprintf("%v-%d-%d", l.layout, l.n, l.k), func(t *testing.T) {
			t.Parallel()
			f(t, setup(t, l.layout, l.n, l.k, change))
		})
	}
}

// sizes are none, one byte, tiny, around a segment, and several segments.
var sizes = []int{0, 1, 100, 3839, 3840, 5000, testSegment - 1, testSegment, testSegment + 1, 3*testSegment + 17}

func TestPutAndGet(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		for _, code := range [][2]int{{1, 1}, {2, 1}, {4, 2}, {12, 6}} {
			b.code.set(code[0], code[1])
			for i, size := range sizes {
				key := fmt.Sprintf("%d-%d/%d", code[0], code[1], size)
				data := noise(uint64(i), size)
				b.put(t, key, data)
				b.check(t, key, data)
			}
		}
		b.settled(t)
		for _, code := range [][2]int{{1, 1}, {2, 1}, {3, 3}, {12, 6}} {
			b.code.set(code[0], code[1])
			for i, size := range sizes {
				b.check(t, fmt.Sprintf("4-2/%d", size), noise(uint64(i), size))
				b.check(t, fmt.Sprintf("12-6/%d", size), noise(uint64(i), size))
			}
		}
		if b.counts.get("strips") != 0 {
			t.Errorf("%v", b.counts.of)
		}
	}, nil)
}

func TestRanges(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		for i, size := range sizes[1:] {
			data := noise(uint64(i), size)
			b.put(t, "k", data)
			for _, r := range []Range{
				{Set: true, From: 0, To: 0},
				{Set: true, From: int64(size - 1), To: -1},
				{Set: true, From: int64(size / 3), To: int64(size / 2)},
				{Set: true, From: 0, To: int64(size) + 100},
				{Set: true, Last: 10},
				{Set: true, From: int64(min(size-1, testSegment-3)), To: testSegment + 3},
				{Part: 1},
			} {
				offset, length := int64(0), int64(size)
				switch {
				case r.Last > 0:
					length = min(r.Last, length)
					offset = int64(size) - length
				case r.Part == 0:
					offset = r.From
					if length -= offset; r.To >= 0 {
						length = min(length, r.To-r.From+1)
					}
				}
				got, err := b.read(t.Context(), "k", r)
				if err != nil || !bytes.Equal(got, data[offset:offset+length]) {
					t.Fatalf("%d bytes, %+v: %d bytes, %v", size, r, len(got), err)
				}
			}
			if _, err := b.read(t.Context(), "k", Range{Set: true, From: int64(size), To: -1}); !errors.Is(err, ErrBadRange) {
				t.Errorf("beyond the end: %v", err)
			}
		}
	}, nil)
}

// TestUnknownSize: a body without a length, and one that doesn't have the length it said.
func TestUnknownSize(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		data := noise(1, 3*testSegment+5)
		_, err := b.Put(t.Context(), PutInput{Bucket: "bucket", Key: "k", Body: bytes.NewReader(data), Size: -1})
		if err != nil {
			t.Fatal(err)
		}
		b.check(t, "k", data)
		for _, size := range []int64{1, testSegment, int64(len(data)) - 1, int64(len(data)) + 1} {
			for _, body := range []io.Reader{bytes.NewReader(data), bytes.NewReader(data[:testSegment/2])} {
				_, err := b.Put(t.Context(), PutInput{Bucket: "bucket", Key: "k", Body: body, Size: size})
				if !errors.Is(err, ErrBody) {
					t.Errorf("%d bytes: %v", size, err)
				}
			}
		}
		b.check(t, "k", data)
		b.settled(t)
		if n := b.blobs(t); n != 2 && n != len(b.stores) {
			t.Errorf("%d blobs of one object", n)
		}
	}, nil)
}

// TestTooLarge: an object of more strips than a document may name is refused by the size
// that was said, before it is read.
func TestTooLarge(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		size := int64(object.MaxStrips) * testSegment
		_, err := b.Put(t.Context(), PutInput{Bucket: "bucket", Key: "k", Body: io.LimitReader(zeros{}, size), Size: size})
		if !errors.Is(err, ErrTooLarge) {
			t.Error(err)
		}
		b.clean(t)
		if n := b.blobs(t); n != 0 {
			t.Errorf("%d blobs", n)
		}
	}, nil)
}
