package follow

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// TestPackedIsReadOnce: a compressed file is read line by line, a buffer at a time
// that ends anywhere in a line, without ever beginning anew.
func TestPackedIsReadOnce(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	var content []byte
	for i := 0; len(content) < 1<<20; i++ {
		content = fmt.Appendf(content, "%d %x\n", i, make([]byte, rng.IntN(200)))
	}
	content = append(content, "no end"...)
	path := filepath.Join(t.TempDir(), "a.gz")
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Close(), os.WriteFile(path, packed.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	src, _, err := openSource(path)
	if err != nil {
		t.Fatal(err)
	}
	defer src.close()
	var got []byte
	var begun io.Reader
	for buf, end := make([]byte, 4096), false; !end; {
		n, err := src.readAt(buf, int64(len(got)))
		if end = errors.Is(err, io.EOF); err != nil && !end {
			t.Fatal(err)
		}
		if begun == nil {
			begun = src.packed.r
		} else if src.packed.r != begun {
			t.Fatalf("it began anew at %d", len(got))
		}
		if end {
			got = append(got, buf[:n]...)
		} else {
			got = append(got, buf[:bytes.LastIndexByte(buf[:n], '\n')+1]...)
		}
	}
	if !bytes.Equal(got, content) {
		t.Errorf("%d bytes, expected %d", len(got), len(content))
	}
	// Further back, and less than what is kept.
	for _, at := range []int64{0, int64(len(content) - 3), 1000, int64(len(content) - 6)} {
		b := make([]byte, 3)
		if n, err := src.readAt(b, at); n != 3 || err != nil && !errors.Is(err, io.EOF) || !bytes.Equal(b, content[at:at+3]) {
			t.Errorf("at %d: %q, %v", at, b[:n], err)
		}
	}
}
