package sizes_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"penstock/infra/shareddata"
	"penstock/pipeline/experiment/coding/sizes"
)

// TestSizesAsTheyAre reads the recording whole: its SOURCE.md gives the number of
// requests and the most bytes of one.
func TestSizesAsTheyAre(t *testing.T) {
	got, err := sizes.Load(filepath.Join(shareddata.Dir(t, "cdn-adaptsize"), "request.trace.gz"))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 66_987 || slices.Max(got) != 4_092_928 || slices.Min(got) != 1 || got[2] != 40_773 {
		t.Errorf("%d sizes from %d to %d, the third %d", len(got), slices.Min(got), slices.Max(got), got[2])
	}
}

func TestForms(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte("1 a 5\n"))
	_ = z.Close()
	for _, c := range []struct {
		name, text string
		want       []int64
	}{
		{"sizes alone", "3\n\n0\n", []int64{3, 1}},
		{"fields", "1 0 68\n2\t1\t7454", []int64{68, 7454}},
		{"segments", "20000000", []int64{sizes.Segment, sizes.Segment, 20_000_000 - 2*sizes.Segment}},
		{"a whole segment", "8388608", []int64{sizes.Segment}},
		{"compressed", packed.String(), []int64{5}},
	} {
		if got, err := sizes.Read(strings.NewReader(c.text)); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, %v, expected %v", c.name, got, err, c.want)
		}
	}
	for _, text := range []string{"", "\n", "a b\n", "1 -2\n", "\x1f\x8bxx", "9223372036854775807\n"} {
		if got, err := sizes.Read(strings.NewReader(text)); !errors.Is(err, sizes.ErrFile) {
			t.Errorf("%q: got %v, %v", text, got, err)
		}
	}
	if _, err := sizes.Load("nowhere"); !errors.Is(err, sizes.ErrFile) {
		t.Errorf("no file: %v", err)
	}
}

// FuzzRead: whatever is read, sizes are those of segments, or there is an error.
func FuzzRead(f *testing.F) {
	f.Add([]byte("1 0 68\n2 1 7454"))
	f.Add([]byte("99999999999\n"))
	f.Add([]byte("\x1f\x8b"))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := sizes.Read(bytes.NewReader(b))
		if (err == nil) != (len(got) > 0) {
			t.Fatalf("%d sizes and %v", len(got), err)
		}
		for _, v := range got {
			if v < 1 || v > sizes.Segment {
				t.Fatalf("a size of %d", v)
			}
		}
	})
}
