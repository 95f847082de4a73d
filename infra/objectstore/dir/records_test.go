package dir

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"penstock/infra/objectstore"
)

func reopen(t *testing.T, s *Store) *Store {
	t.Helper()
	again, err := Open(s.root, Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	return again
}

func appendN(t testing.TB, s *Store, from, to uint64) {
	t.Helper()
	var rs []objectstore.Record
	for n := from; n <= to; n++ {
		rs = append(rs, objectstore.Record{Number: n, Payload: bytes.Repeat([]byte{byte(n)}, int(n))})
	}
	if _, err := s.AppendAll(t.Context(), "o", "r", rs); err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, s *Store) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(s.root, "o", "r"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestTornTail cuts a file of three records at every byte: the next append makes
// it what it would have been, whatever the cut left.
func TestTornTail(t *testing.T) {
	s := open(t, Options{NoSync: true})
	appendN(t, s, 1, 3)
	whole := content(t, s)
	path := filepath.Join(s.root, "o", "r")
	for size := range int64(len(whole)) + 1 {
		for _, tail := range []string{"", "\x00\x00\x00", "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"} {
			if err := os.WriteFile(path, []byte(whole[:size]+tail), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, s := range []*Store{s, reopen(t, s)} {
				err := s.Scan(t.Context(), "o", "r", func(uint64, []byte) error { return nil })
				if boundary := size == 0 || size == 21 || size == 43 || size == 66; !boundary || tail != "" {
					if !errors.Is(err, objectstore.ErrTorn) && !errors.Is(err, objectstore.ErrCorrupt) {
						t.Fatalf("cut at %d: scan says %v", size, err)
					}
				} else if err != nil {
					t.Fatalf("whole at %d: scan says %v", size, err)
				}
			}
			if tail != "" && size != 0 && size != 21 && size != 43 && size != 66 {
				continue // half a record and zeros may be damage: another test
			}
			appendN(t, s, 1, 3)
			if content(t, s) != whole {
				t.Fatalf("cut at %d and appended again, the file differs", size)
			}
		}
	}
}

// TestDamage changes every byte of the first of three records: nothing behind it
// is thrown away.
func TestDamage(t *testing.T) {
	s := open(t, Options{NoSync: true})
	appendN(t, s, 1, 3)
	whole := []byte(content(t, s))
	path := filepath.Join(s.root, "o", "r")
	for i := range 21 {
		if 12 <= i && i < 16 {
			continue // a longer length looks like an unfinished record
		}
		bad := bytes.Clone(whole)
		bad[i] ^= 0x40
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		s := reopen(t, s)
		if _, err := s.AppendAll(t.Context(), "o", "r", []objectstore.Record{{Number: 9}}); !errors.Is(err, objectstore.ErrCorrupt) {
			t.Errorf("byte %d: append says %v", i, err)
		}
		if _, _, err := s.Tail(t.Context(), "o", "r"); !errors.Is(err, objectstore.ErrCorrupt) {
			t.Errorf("byte %d: tail says %v", i, err)
		}
		if got := content(t, s); got != string(bad) {
			t.Fatalf("byte %d: the damaged file was changed", i)
		}
	}
}

func FuzzScan(f *testing.F) {
	f.Add(appendRecord(appendRecord(nil, 1, []byte("one")), 2, nil))
	f.Add([]byte("PSR1"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var whole []byte
		err := scan(bytes.NewReader(b), int64(len(b)), func(number uint64, payload []byte) error {
			whole = appendRecord(whole, number, payload)
			return nil
		})
		if !bytes.HasPrefix(b, whole) {
			t.Fatal("read what isn't there")
		}
		if (err == nil) != (len(whole) == len(b)) {
			t.Fatalf("read %d of %d bytes: %v", len(whole), len(b), err)
		}
	})
}

// BenchmarkAppend is the window step of a replay: one append of a few records
// per owner.
func BenchmarkAppend(b *testing.B) {
	s := open(b, Options{NoSync: true})
	rs := make([]objectstore.Record, 7)
	owners := make([]string, 2500)
	for i := range owners {
		owners[i] = fmt.Sprintf("user-%d", i)
	}
	for i := range rs {
		rs[i].Payload = make([]byte, 1000)
	}
	b.ReportAllocs()
	number := uint64(0)
	for i := 0; b.Loop(); i++ {
		for k := range rs {
			number++
			rs[k].Number = number
		}
		if _, err := s.AppendAll(b.Context(), owners[i%len(owners)], "records", rs); err != nil {
			b.Fatal(err)
		}
	}
}
