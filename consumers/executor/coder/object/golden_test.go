package object

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

var update = flag.Bool("update", false, "write golden objects that aren't there yet; those that are stay")

// A golden object is a version that was once written. They are never written anew: one
// that can't be read any more is a version of somebody's that can't be read any more. A
// new schema, coding or rule gets new ones beside them.
var goldens = []struct {
	name    string
	coding  Coding
	size    int
	segment int64
	cut     int    // of a staged version; 0 is as meant
	lost    string // blobs that haven't landed, an x each
}{
	{"shared", SharedCoding(), 5000, 4096, 0, ""},
	{"shared-lacking", SharedCoding(), 4100, 4096, 0, ".x"},
	{"shared-tiny", SharedCoding(), 200, 4096, 0, ""},
	{"shared-tiny-lacking", SharedCoding(), 200, 4096, 0, ".x"},
	{"shared-empty", SharedCoding(), 0, 4096, 0, ""},
	{"shared-staged-2", SharedCoding(), 3900, 4096, 2, "...x"},
	{"shared-staged-3", SharedCoding(), 4096, 4096, 3, "x.x..x"},
	{"shared-staged-4", SharedCoding(), 4000, 4096, 4, "......xx"},
	{"shared-staged-5", SharedCoding(), 3840, 4096, 5, ""},
	{"shared-staged-6", SharedCoding(), 4001, 4096, 6, "xx.x..x..xx."},
	{"spread-6-4-lacking", SpreadCoding(6, 4), 5000, 4096, 0, ".x..x."},
	{"spread-1-1", SpreadCoding(1, 1), 300, 4096, 0, ""},
	{"spread-2-1", SpreadCoding(2, 1), 300, 4096, 0, ""},
	{"spread-4-2", SpreadCoding(4, 2), 5000, 4096, 0, ""},
	{"spread-6-4", SpreadCoding(6, 4), 5000, 4096, 0, ""},
	{"spread-6-4-tiny", SpreadCoding(6, 4), 100, 4096, 0, ""},
	{"spread-6-4-empty", SpreadCoding(6, 4), 0, 4096, 0, ""},
	{"spread-12-6", SpreadCoding(12, 6), 4500, 4096, 0, ""},
}

func goldenNames() []string {
	var names []string
	for _, g := range goldens {
		names = append(names, g.name)
	}
	return names
}

func golden(t testing.TB, parts ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(append([]string{"testdata", "golden"}, parts...)...))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// goldenContent is the bytes of all golden objects: no generator, so that nothing that
// they follow from can change.
func goldenContent(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*i>>4 ^ i)
	}
	return b
}

// writeGolden writes an object that isn't there.
func writeGolden(t *testing.T, name string, s stored) {
	t.Helper()
	dir := filepath.Join("testdata", "golden", name)
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return
	}
	b, err := s.MarshalBinary()
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	files := map[string][]byte{"document": b}
	for i, blob := range s.blobs {
		if !s.Landed(i) {
			continue
		}
		files[fmt.Sprintf("blob-%d", i)] = blob
	}
	for file, content := range files {
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, file), content, 0o600)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// without is a version of which some blobs haven't landed.
func (s stored) without(t *testing.T, lost string) stored {
	t.Helper()
	blobs, places := slices.Clone(s.blobs), slices.Clone(s.Places)
	for i, c := range lost {
		if c == 'x' {
			blobs[i], places[i] = nil, Place{}
		}
	}
	v, err := s.Lie(s.Shape.Cut, places)
	if err != nil {
		t.Fatal(err)
	}
	return stored{v, blobs}
}

func everyBlob(int) bool { return true }

// TestGoldenObjects: what was written once can be read, with all chunks and with as few
// as must do, and is written the same today.
func TestGoldenObjects(t *testing.T) {
	t.Parallel()
	for _, g := range goldens {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			data := goldenContent(g.size)
			today := put(t, g.coding, g.segment, "photos/ann/2026 ü.jpg", "01K0000000000000000000GOLD", data)
			if g.cut > 0 {
				today = today.staged(t, 2*g.cut, g.cut, everyBlob)
			}
			today = today.without(t, g.lost)
			if *update {
				writeGolden(t, g.name, today)
			}
			document := golden(t, g.name, "document")
			v, err := Parse(document)
			if err != nil {
				t.Fatal(err)
			}
			s := stored{Version: v}
			for i := range v.Shape.Blobs() {
				var blob []byte
				if v.Landed(i) {
					blob = golden(t, g.name, fmt.Sprintf("blob-%d", i))
				}
				s.blobs = append(s.blobs, blob)
			}
			d := decoderOf(t, v)
			for name, keep := range map[string]func(_, strip int) bool{
				"all":    all,
				"parity": func(_, strip int) bool { return strip >= v.Shape.N-v.Shape.K },
				"mixed":  func(_, strip int) bool { return strip%2 == 0 || v.Shape.N < 2*v.Shape.K },
			} {
				if g.lost != "" && name != "all" {
					continue
				}
				got, err := s.read(t, d, 0, v.Shape.Size, keep)
				if err != nil || !bytes.Equal(got, data) {
					t.Errorf("%s: %v", name, err)
				}
			}
			b, err := today.MarshalBinary()
			if err != nil || !bytes.Equal(b, document) || !slices.EqualFunc(today.blobs, s.blobs, bytes.Equal) {
				t.Errorf("written otherwise today: %v", err)
			}
		})
	}
}
