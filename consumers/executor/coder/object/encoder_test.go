package object

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// TestHowItIsReadDoesNotMatter: the same frames from readers that give much or little.
func TestHowItIsReadDoesNotMatter(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, 4095, 4096, 4097, 2 * 4096, 9000} {
		data := noise(20, size)
		want := put(t, SharedCoding(), 4096, "k", "v", data)
		for name, r := range map[string]io.Reader{
			"bytes":          iotest.OneByteReader(bytes.NewReader(data)),
			"halves":         iotest.HalfReader(bytes.NewReader(data)),
			"end with bytes": iotest.DataErrReader(bytes.NewReader(data)),
		} {
			e, err := NewEncoder(SharedCoding(), 4096)
			if err != nil {
				t.Fatal(err)
			}
			if err := e.Reset("k", "v"); err != nil {
				t.Fatal(err)
			}
			var blob []byte
			for {
				s, err := e.Next(r)
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				blob = append(blob, e.Frames(0, s.N)...)
			}
			v, err := e.Finish(Info{Places: want.Places})
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(blob, bytes.Join(inOrder(want), nil)) || v.SHA256 != want.SHA256 || !slices.Equal(v.Sums, want.Sums) {
				t.Errorf("%d bytes, %s: another encoding", size, name)
			}
		}
	}
}

// inOrder is the frames of a version, segment by segment.
func inOrder(s stored) [][]byte {
	var frames [][]byte
	for segment := range s.Shape.Segments() {
		for i := range s.Shape.N {
			c, _ := s.Shape.Run(segment, i, 1)
			frames = append(frames, s.fetch(c))
		}
	}
	return frames
}

type idle struct{}

func (idle) Read([]byte) (int, error) { return 0, nil }

// TestABodyThatEndsTooSoon is an error, not a short object.
func TestABodyThatEndsTooSoon(t *testing.T) {
	t.Parallel()
	cut := errors.New("cut")
	for _, size := range []int{0, 1, 4095, 4096, 4097} {
		for name, err := range map[string]error{
			"unexpected": io.ErrUnexpectedEOF, "wrapped": fmt.Errorf("body: %w", io.EOF), "own": cut, "none": nil,
		} {
			end := iotest.ErrReader(err)
			if err == nil {
				end, err = idle{}, io.ErrNoProgress
			}
			e, _ := NewEncoder(SpreadCoding(3, 2), 4096)
			if err := e.Reset("k", "v"); err != nil {
				t.Fatal(err)
			}
			r := io.MultiReader(bytes.NewReader(make([]byte, size)), end)
			if size == 0 {
				r = end
			}
			var got error
			for got == nil {
				_, got = e.Next(r)
			}
			if name == "wrapped" {
				err = io.ErrUnexpectedEOF
			}
			if !errors.Is(got, err) || errors.Is(got, io.EOF) {
				t.Errorf("%d bytes, then %s: %v", size, name, got)
			}
			if _, err := e.Finish(Info{}); !errors.Is(err, ErrState) {
				t.Errorf("%d bytes, then %s: finished: %v", size, name, err)
			}
			if _, err := e.Next(r); !errors.Is(err, ErrState) {
				t.Errorf("%d bytes, then %s: went on: %v", size, name, err)
			}
		}
	}
}

func TestEncoderOutOfOrder(t *testing.T) {
	t.Parallel()
	e, err := NewEncoder(SpreadCoding(3, 2), 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Next(strings.NewReader("x")); !errors.Is(err, ErrState) {
		t.Error(err)
	}
	if _, err := e.Finish(Info{}); !errors.Is(err, ErrState) {
		t.Error(err)
	}
	for _, names := range [][2]string{{"", "v"}, {"k", ""}, {"\xff", "v"}, {strings.Repeat("k", maxKey+1), "v"}, {"k", strings.Repeat("v", maxID+1)}} {
		if err := e.Reset(names[0], names[1]); !errors.Is(err, ErrDocument) {
			t.Error(err)
		}
	}
	if err := e.Reset("k", "v"); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Finish(Info{}); !errors.Is(err, ErrState) {
		t.Error(err)
	}
	if _, err := e.Next(strings.NewReader("")); err != io.EOF { //nolint:errorlint // as io.Reader's users compare it
		t.Error(err)
	}
	if _, err := e.Finish(Info{Places: []Place{{"a", "b"}}}); !errors.Is(err, ErrDocument) {
		t.Error(err)
	}
	if v, err := e.Finish(Info{}); err != nil || v.ETag != "d41d8cd98f00b204e9800998ecf8427e" {
		t.Errorf("an empty object: %+v, %v", v, err)
	}
}

// TestTooLargeForItsSegments: the encoder stops before strips that no document can
// name. What came before them is taken as read.
func TestTooLargeForItsSegments(t *testing.T) {
	t.Parallel()
	e, err := NewEncoder(SpreadCoding(64, 64), MinSegment)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Reset("k", "v"); err != nil {
		t.Fatal(err)
	}
	e.version.Sums = make([]uint64, MaxStrips-64)
	e.size = MinSegment * (MaxStrips/64 - 1)
	if s, err := e.Next(zero{}); err != nil || s.Validate() != nil {
		t.Errorf("the last that fits: %v, %v", err, s.Validate())
	}
	if _, err := e.Next(zero{}); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
	if _, err := e.Finish(Info{}); !errors.Is(err, ErrState) {
		t.Error(err)
	}
}

// TestExpectIsAHint: right or wrong, the frames are the same.
func TestExpectIsAHint(t *testing.T) {
	t.Parallel()
	for _, c := range []Coding{SharedCoding(), SpreadCoding(4, 2), SpreadCoding(64, 33), SpreadCoding(3, 1)} {
		for _, size := range []int{0, 1, 63, 64, 200, 4000, 4095, 4096, 4097, 9000} {
			data := noise(21, size)
			want := put(t, c, 4096, "k", "v", data)
			for _, hint := range []int64{-1, 0, 1, 64, 130, int64(size) - 1, int64(size), int64(size) + 1, 2 * int64(size), 4096, 1 << 40} {
				e, err := NewEncoder(c, 4096)
				if err != nil {
					t.Fatal(err)
				}
				if got := encodeAll(t, e, hint, bytes.NewReader(data)); !slices.Equal(got.Sums, want.Sums) || got.SHA256 != want.SHA256 || got.Shape != want.Shape {
					t.Fatalf("%v: %d bytes, %d expected: another encoding", c, size, hint)
				}
			}
		}
	}
}

func encodeAll(t *testing.T, e *Encoder, hint int64, r io.Reader) *Version {
	t.Helper()
	if err := e.Reset("k", "v"); err != nil {
		t.Fatal(err)
	}
	e.Expect(hint)
	var info Info
	for {
		s, err := e.Next(r)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := len(info.Places); i < s.Blobs(); i++ {
			info.Places = append(info.Places, Place{"s", fmt.Sprint(i)})
		}
	}
	v, err := e.Finish(info)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

type zero struct{}

func (zero) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// TestSegmentsCostNoMemory: after the first segment an encoder allocates nothing of its
// own. What is left is klauspost/reedsolomon's, a few slices a call whatever the size.
func TestSegmentsCostNoMemory(t *testing.T) {
	if raceEnabled {
		t.Log("the race detector allocates; only reading and writing is tried")
	}
	for _, c := range []Coding{SharedCoding(), SpreadCoding(6, 4), SpreadCoding(3, 1)} {
		e, err := NewEncoder(c, 64<<10)
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Reset("k", "v"); err != nil {
			t.Fatal(err)
		}
		for range 200 { // room for the checksums to come
			if _, err := e.Next(zero{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := e.Reset("k", "w"); err != nil {
			t.Fatal(err)
		}
		// The byte ahead means a reader that never ends.
		if got := testing.AllocsPerRun(100, func() { _, _ = e.Next(zero{}) }); got > 3 && !raceEnabled {
			t.Errorf("%v: %v allocations a segment", c, got)
		}
	}
}
