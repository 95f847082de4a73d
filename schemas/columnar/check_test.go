package columnar_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/ipc"

	"penstock/schemas/columnar"
)

// message is one message of a stream, as Check is given it.
type message struct{ meta, body []byte }

// messages cuts a stream into its messages.
func messages(t testing.TB, stream []byte) (out []message) {
	t.Helper()
	for {
		n := binary.LittleEndian.Uint32(stream[4:])
		if n == 0 {
			return out
		}
		meta := stream[8 : 8+n]
		size, err := columnar.Check(meta)
		if err != nil {
			t.Fatal(err)
		}
		stream = stream[8+n:]
		out = append(out, message{meta, stream[:size]})
		stream = stream[size:]
	}
}

// streams are those of Arrow's own writer, plain and compressed.
func streams(t testing.TB) (out [][]byte) {
	t.Helper()
	r, err := ipc.NewReader(bytes.NewReader(write(t, sample(), 3)))
	if err != nil || !r.Next() {
		t.Fatal("no record: ", err)
	}
	for _, o := range []ipc.Option{ipc.WithSchema(r.Schema()), ipc.WithZstd()} {
		var b bytes.Buffer
		w := ipc.NewWriter(&b, ipc.WithSchema(r.Schema()), o)
		if err := errors.Join(w.Write(r.Record()), w.Close()); err != nil {
			t.Fatal(err)
		}
		out = append(out, b.Bytes())
	}
	return out
}

func TestCheckLetsGoodMessagesPass(t *testing.T) {
	for _, stream := range streams(t) {
		all := messages(t, stream)
		if len(all) != 3 {
			t.Errorf("%d messages, expected a schema, a dictionary and a batch", len(all))
		}
		for _, m := range all {
			if err := columnar.CheckBody(m.meta, m.body, 1<<20); err != nil {
				t.Error(err)
			}
		}
	}
}

// A compressed buffer that claims to be longer than is allowed is refused.
func TestCheckBodyBoundsWhatIsUnpacked(t *testing.T) {
	batch := messages(t, streams(t)[1])[2]
	if err := columnar.CheckBody(batch.meta, batch.body, 1); !errors.Is(err, columnar.ErrCorrupt) {
		t.Errorf("got %v", err)
	}
	plain := messages(t, streams(t)[0])[2]
	if err := columnar.CheckBody(plain.meta, plain.body, 1); err != nil {
		t.Errorf("nothing is to be unpacked: %v", err)
	}
}

// Damage anywhere gives an error or a message, never a panic; a body that is
// shorter than was promised is no reason to panic either.
func TestCheckOfDamagedMessages(t *testing.T) {
	refused := 0
	for _, stream := range streams(t) {
		for _, m := range messages(t, stream) {
			for at := range m.meta {
				for _, flip := range []byte{0x01, 0x5a, 0xff} {
					meta := bytes.Clone(m.meta)
					meta[at] ^= flip
					_, err := columnar.Check(meta)
					if err == nil {
						err = columnar.CheckBody(meta, m.body, 1<<20)
					}
					if err != nil {
						refused++
						if !errors.Is(err, columnar.ErrCorrupt) {
							t.Fatal(err)
						}
					}
				}
			}
			for n := range m.meta {
				if _, err := columnar.Check(m.meta[:n]); err != nil && !errors.Is(err, columnar.ErrCorrupt) {
					t.Fatal(err)
				}
			}
		}
	}
	if refused == 0 {
		t.Error("no damage was seen")
	}
}

// A field whose children are itself, and one of billions of children.
func TestCheckBoundsNestingAndCounts(t *testing.T) {
	schema := func(children uint32) []byte {
		b := make([]byte, 96)
		put32 := func(at int, v uint32) { binary.LittleEndian.PutUint32(b[at:], v) }
		put16 := func(at int, v ...uint16) {
			for i, x := range v {
				binary.LittleEndian.PutUint16(b[at+2*i:], x)
			}
		}
		put32(0, 20)                       // the message is at 20
		put16(8, 12, 12, 0, 4, 8, 0)       // its list of fields: header type at 4, header at 8
		put32(20, 12)                      // back to that list
		b[24] = 1                          // a schema
		put32(28, 44-28)                   // which is at 44
		put16(36, 8, 8, 0, 4)              // its list of fields: columns at 4
		put32(44, 8)                       //
		put32(48, 52-48)                   // the vector of columns, at 52
		put32(52, 1)                       // of one
		put32(56, 80-56)                   // which is at 80
		put16(60, 16, 8, 0, 0, 0, 0, 0, 4) // its list of fields: children at 4
		put32(80, 20)                      //
		put32(84, 88-84)                   // the vector of children, at 88
		put32(88, children)                //
		put32(92, ^uint32(92-80)+1)        // the first is the column itself
		return b
	}
	for _, children := range []uint32{1, 1 << 31} {
		if _, err := columnar.Check(schema(children)); !errors.Is(err, columnar.ErrCorrupt) {
			t.Errorf("%d children: %v", children, err)
		}
	}
	if _, err := columnar.Check(schema(0)); err != nil {
		t.Errorf("without children: %v", err)
	}
}

func FuzzCheck(f *testing.F) {
	for _, stream := range streams(f) {
		for _, m := range messages(f, stream) {
			f.Add(m.meta, m.body)
		}
	}
	f.Fuzz(func(t *testing.T, meta, body []byte) {
		size, err := columnar.Check(meta)
		if err == nil && size <= int64(len(body)) {
			err = columnar.CheckBody(meta, body[:size], 1<<20)
		}
		if err != nil && !errors.Is(err, columnar.ErrCorrupt) {
			t.Error(err)
		}
	})
}
