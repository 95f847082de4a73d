package objectstore_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"penstock/infra/objectstore"
)

// TestFill: a reader that was cut off is not one that has ended.
func TestFill(t *testing.T) {
	cut := func(err error) io.Reader { return io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(err)) }
	wrapped := fmt.Errorf("at byte 3: %w", io.EOF)
	for name, test := range map[string]struct {
		r     io.Reader
		n     int
		whole bool
		err   error
	}{
		"empty":         {strings.NewReader(""), 0, true, nil},
		"short":         {strings.NewReader("abc"), 3, true, nil},
		"byte by byte":  {iotest.OneByteReader(strings.NewReader("abc")), 3, true, nil},
		"end with data": {iotest.DataErrReader(strings.NewReader("abc")), 3, true, nil},
		"full":          {strings.NewReader("abcdefgh"), 5, false, nil},
		"cut off":       {cut(io.ErrUnexpectedEOF), 3, false, io.ErrUnexpectedEOF},
		"wrapped end":   {cut(wrapped), 3, false, wrapped},
		"stuck":         {stuck{}, 0, false, io.ErrNoProgress},
	} {
		n, whole, err := objectstore.Fill(test.r, make([]byte, 5))
		if n != test.n || whole != test.whole || !errors.Is(err, test.err) {
			t.Errorf("%s: %d, %v, %v", name, n, whole, err)
		}
	}
}

type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }
