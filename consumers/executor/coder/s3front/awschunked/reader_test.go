package awschunked

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

// The example in AWS's documentation: 66,560 times the letter a, in two chunks.
const (
	exampleSecret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
	exampleDate   = "20130524T000000Z"
	exampleLength = 66560
)

var exampleChunks = []struct {
	size               int
	plain, withTrailer string
}{
	{65536, "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648", "b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2"},
	{1024, "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497", "1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7"},
	{0, "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9", "2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992"},
}

func exampleSigner(seed string) *Signer {
	return NewSigner(exampleSecret, "20130524", "us-east-1", "s3", exampleDate, seed)
}

// TestExample reads the bodies of AWS's documentation.
func TestExample(t *testing.T) {
	t.Parallel()
	var plain, trailing strings.Builder
	for _, c := range exampleChunks {
		for b, sig := range map[*strings.Builder]string{&plain: c.plain, &trailing: c.withTrailer} {
			fmt.Fprintf(b, "%x;chunk-signature=%s\r\n", c.size, sig)
			if c.size > 0 {
				b.WriteString(strings.Repeat("a", c.size) + "\r\n")
			}
		}
	}
	plain.WriteString("\r\n")
	trailing.WriteString("x-amz-checksum-crc32c:sOO8/Q==\r\nx-amz-trailer-signature:d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435\r\n\r\n")
	for name, c := range map[string]struct {
		body string
		o    Options
	}{
		"plain":    {plain.String(), Options{Signer: exampleSigner("4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9")}},
		"trailing": {trailing.String(), Options{Signer: exampleSigner("106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e"), Trailer: "x-amz-checksum-crc32c"}},
	} {
		c.o.Length = exampleLength
		r := New(strings.NewReader(c.body), c.o)
		got, err := io.ReadAll(r)
		if err != nil || string(got) != strings.Repeat("a", exampleLength) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		if c.o.Trailer != "" && r.Trailer() != "sOO8/Q==" {
			t.Errorf("%s: trailer %q", name, r.Trailer())
		}
	}
}

// body writes data as aws-chunked. It is the encoder that the reader is tried with.
func body(data []byte, sizes []int, s *Signer, name, value string) []byte {
	var b bytes.Buffer
	chunk := func(p []byte) {
		fmt.Fprintf(&b, "%x", len(p))
		if s != nil {
			sum := sha256.Sum256(p)
			s.chunk(sum[:]) // moves on to the signature that is due
			b.WriteString(";chunk-signature=" + s.before)
		}
		b.WriteString("\r\n")
		if len(p) > 0 {
			b.Write(p)
			b.WriteString("\r\n")
		}
	}
	for _, n := range sizes {
		n = min(n, len(data))
		if n > 0 {
			chunk(data[:n])
			data = data[n:]
		}
	}
	if len(data) > 0 {
		chunk(data)
	}
	chunk(nil)
	if name != "" {
		b.WriteString(name + ":" + value + "\r\n")
		if s != nil {
			s.trailer(name, value, []byte("x-amz-trailer-signature:"))
			b.WriteString("x-amz-trailer-signature:" + s.before + "\r\n")
		}
	}
	b.WriteString("\r\n")
	return b.Bytes()
}

func signer() *Signer {
	return NewSigner("secret", "20260101", "r", "s3", "20260101T000000Z", strings.Repeat("0", 64))
}

// TestRoundTrip: what was written is read, however it is cut; and of a signed body every
// changed or missing byte is found.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		data := bytes.Repeat([]byte(rapid.StringN(1, 9, 40).Draw(t, "text")), rapid.IntRange(0, 900).Draw(t, "times"))
		sizes := rapid.SliceOf(rapid.IntRange(MinChunk, 3*MinChunk)).Draw(t, "sizes")
		o, signed := Options{Length: int64(len(data))}, rapid.Bool().Draw(t, "signed")
		var s *Signer
		if signed {
			o.Signer, s = signer(), signer()
		}
		if rapid.Bool().Draw(t, "trailing") {
			o.Trailer = "x-amz-checksum-crc32"
		}
		text := body(data, sizes, s, o.Trailer, "AAAAAA==")
		got, err := io.ReadAll(iotest.HalfReader(New(bytes.NewReader(text), o)))
		if err != nil || !bytes.Equal(got, data) {
			t.Fatalf("%d of %d bytes, %v", len(got), len(data), err)
		}
		at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
		if signed {
			o.Signer = signer()
		}
		if _, err := io.ReadAll(New(bytes.NewReader(text[:at]), o)); err == nil {
			t.Fatalf("cut off at %d of %d", at, len(text))
		}
		if signed {
			o.Signer = signer()
			text[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
			got, err := io.ReadAll(New(bytes.NewReader(text), o))
			// A size and the trailer's name may be written in either case.
			if err == nil && !bytes.Equal(got, data) {
				t.Fatalf("changed at %d: %d bytes passed", at, len(got))
			}
		}
	})
}

// TestMalformed: what is wrong, by its error.
func TestMalformed(t *testing.T) {
	t.Parallel()
	plain, trailing := Options{Length: 3}, Options{Length: 3, Trailer: "x-amz-checksum-crc32"}
	big := strings.Repeat("b", MinChunk)
	for text, c := range map[string]struct {
		o    Options
		want error
	}{
		"3\r\nabc\r\n0\r\n\r\n":                                    {plain, nil},
		"3\r\nabc\r\n000\r\n\r\n":                                  {plain, nil},
		"3\r\nabc\r\n0\r\nX-Amz-Checksum-Crc32: AAAAAA== \r\n\r\n": {trailing, nil},
		"3\r\nabc\r\n0\r\nx-amz-checksum-crc32:AAAAAA==\n\r\n\r\n": {trailing, nil},
		"":                               {plain, ErrTruncated},
		"3":                              {plain, ErrTruncated},
		"3\r\nab":                        {plain, ErrTruncated},
		"3\r\nabc\r\n":                   {plain, ErrTruncated},
		"3\r\nabc\r\n0\r\n":              {plain, ErrTruncated},
		"3\r\nabc\r\n0\r\n\r\nx":         {plain, ErrMalformed},
		"-3\r\nabc\r\n0\r\n\r\n":         {plain, ErrMalformed},
		"+3\r\nabc\r\n0\r\n\r\n":         {plain, ErrMalformed},
		" 3\r\nabc\r\n0\r\n\r\n":         {plain, ErrMalformed},
		"3\nabc\r\n0\r\n\r\n":            {plain, ErrMalformed},
		"3\r\nabcd\r\n0\r\n\r\n":         {plain, ErrMalformed},
		"3;x=y\r\nabc\r\n0\r\n\r\n":      {plain, ErrMalformed},
		"ffffffffffffffff\r\nabc\r\n":    {plain, ErrMalformed},
		"fffffffffffffff\r\nabc\r\n":     {plain, ErrLength},
		"4\r\nabcd\r\n0\r\n\r\n":         {plain, ErrLength},
		"2\r\nab\r\n0\r\n\r\n":           {plain, ErrLength},
		"0\r\n\r\n":                      {plain, ErrLength},
		"2\r\nab\r\n1\r\nc\r\n0\r\n\r\n": {plain, ErrChunkSize},
		"3\r\nabc\r\n0\r\nx-amz-checksum-crc32:A\r\n\r\n":           {plain, ErrTrailer},
		"3\r\nabc\r\n0\r\n\r\n\r\n":                                 {trailing, ErrTrailer},
		"3\r\nabc\r\n0\r\nother:A\r\n\r\n":                          {trailing, ErrTrailer},
		"3\r\nabc\r\n0\r\nx-amz-checksum-crc32:A\r\nmore:B\r\n\r\n": {trailing, ErrTrailer},
		"3\r\nabc\r\n0\r\nx-amz-checksum-crc32:" + big + "\r\n\r\n": {trailing, ErrMalformed},
		big:                                {plain, ErrMalformed},
		"3;chunk-signature=abc\r\nabc\r\n": {Options{Length: 3, Signer: signer()}, ErrMalformed},
		"3\r\nabc\r\n1\r\n":                {Options{Length: 3, Signer: signer()}, ErrMalformed},
		"3;chunk-signature=" + strings.Repeat("0", 64) + "\r\nabc\r\n0": {Options{Length: 3, Signer: signer()}, ErrSignature},
	} {
		r := New(strings.NewReader(text), c.o)
		got, err := io.ReadAll(r)
		if !errors.Is(err, c.want) || c.want == nil && (err != nil || string(got) != "abc") {
			t.Errorf("%.60q: %q, %v, expected %v", text, got, err, c.want)
		}
		if _, again := r.Read(make([]byte, 1)); c.want != nil && !errors.Is(again, c.want) {
			t.Errorf("%.60q: then %v", text, again)
		}
	}
	broken := errors.New("broken")
	if _, err := io.ReadAll(New(io.MultiReader(strings.NewReader("3\r\na"), iotest.ErrReader(broken)), plain)); !errors.Is(err, broken) {
		t.Error(err)
	}
}

// FuzzReader: no body makes the reader panic, give more than was said, or pass without
// its signatures.
func FuzzReader(f *testing.F) {
	f.Add([]byte("3\r\nabc\r\n0\r\nx-amz-checksum-crc32:AAAA\r\n\r\n"), int64(3), false, true)
	f.Add(body([]byte("abc"), nil, signer(), "x-amz-checksum-crc32", "AAAAAA=="), int64(3), true, true)
	f.Fuzz(func(t *testing.T, text []byte, length int64, signed, trailing bool) {
		o := Options{Length: length}
		if signed {
			o.Signer = signer()
		}
		if trailing {
			o.Trailer = "x-amz-checksum-crc32"
		}
		got, err := io.ReadAll(New(bytes.NewReader(text), o))
		switch {
		case int64(len(got)) > max(length, 0):
			t.Fatalf("%d bytes of %d", len(got), length)
		case err == nil && int64(len(got)) != length:
			t.Fatalf("%d bytes of %d passed", len(got), length)
		case err == nil && signed && !bytes.Contains(text, []byte(";chunk-signature=")):
			t.Fatal("unsigned data passed")
		}
	})
}

// BenchmarkReader reads 1 MiB in chunks of 64 KiB.
func BenchmarkReader(b *testing.B) {
	data := bytes.Repeat([]byte("x"), 1<<20)
	sizes := []int{}
	for range 15 {
		sizes = append(sizes, 64<<10)
	}
	for name, fresh := range map[string]func() *Signer{"unsigned": func() *Signer { return nil }, "signed": signer} {
		b.Run(name, func(b *testing.B) {
			text := body(data, sizes, fresh(), "", "")
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				r := New(bytes.NewReader(text), Options{Length: int64(len(data)), Signer: fresh()})
				if _, err := io.Copy(io.Discard, r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
