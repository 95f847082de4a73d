package objectstoretest

import (
	"bytes"
	"sync"
	"testing"

	"penstock/infra/objectstore"
)

func scanAll(t *testing.T, s objectstore.Records, owner, file string) (out []objectstore.Record) {
	t.Helper()
	ok(t, s.Scan(t.Context(), owner, file, func(number uint64, payload []byte) error {
		out = append(out, objectstore.Record{Number: number, Payload: bytes.Clone(payload)})
		return nil
	}))
	return out
}

func numbers(rs []objectstore.Record) (out []uint64) {
	for _, r := range rs {
		out = append(out, r.Number)
	}
	return out
}

func testAppend(t *testing.T, store objectstore.Store) {
	s := store.(objectstore.Records)
	ctx := t.Context()
	if _, has, err := s.Tail(ctx, "o", "r"); has || err != nil {
		t.Errorf("an absent file has a tail (%v)", err)
	}
	is(t, s.Scan(ctx, "o", "r", nil), objectstore.ErrNoOwner)
	n, err := s.AppendAll(ctx, "o", "r", nil)
	if err != nil || n != 0 {
		t.Fatal(n, err)
	}
	if l := list(t, store, "o"); len(l.Objects) != 1 || l.Bytes != 0 {
		t.Errorf("appending nothing makes %+v, want one empty object", l)
	}
	before := list(t, store, "o").Version
	n, err = s.AppendAll(ctx, "o", "r", []objectstore.Record{{Number: 3, Payload: []byte("three")}, {Number: 7}})
	if err != nil || n != 2 {
		t.Fatal(n, err)
	}
	if list(t, store, "o").Version == before {
		t.Error("an append left the version as it was")
	}
	ok(t, objectstore.Append(ctx, s, "o", "deep/er", 1, []byte("x")))
	if tail, has, err := s.Tail(ctx, "o", "r"); tail != 7 || !has || err != nil {
		t.Errorf("the tail is %d, %v, %v", tail, has, err)
	}
	got := scanAll(t, s, "o", "r")
	if len(got) != 2 || got[0].Number != 3 || string(got[0].Payload) != "three" || got[1].Number != 7 || len(got[1].Payload) != 0 {
		t.Errorf("read %+v", got)
	}
	_, err = s.AppendAll(ctx, "o", "r", []objectstore.Record{{Number: 9}, {Number: 8}})
	is(t, err, objectstore.ErrOrder)
}

func testAppendRepeats(t *testing.T, store objectstore.Store) {
	s := store.(objectstore.Records)
	ctx := t.Context()
	var all []objectstore.Record
	for i := range uint64(100) {
		all = append(all, objectstore.Record{Number: i + 1, Payload: bytes.Repeat([]byte{byte(i)}, int(i)*10)})
	}
	var wg sync.WaitGroup
	for from := 0; from < 100; from += 10 {
		wg.Go(func() {
			for i := 0; i <= from; i += 10 {
				if _, err := s.AppendAll(ctx, "o", "r", all[:i+10]); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	got := scanAll(t, s, "o", "r")
	if len(got) != len(all) {
		t.Fatalf("records %v", numbers(got))
	}
	for i := range got {
		if got[i].Number != all[i].Number || !bytes.Equal(got[i].Payload, all[i].Payload) {
			t.Fatalf("record %d differs", i)
		}
	}
	n, err := s.AppendAll(ctx, "o", "r", append(all[90:], objectstore.Record{Number: 200}))
	if n != 1 || err != nil {
		t.Errorf("of 11 records with 1 new one, %d were appended (%v)", n, err)
	}
}

func testAppendClosed(t *testing.T, store objectstore.Store) {
	s := store.(objectstore.Records)
	ctx := t.Context()
	ok(t, objectstore.Append(ctx, s, "o", "r", 1, []byte("x")))
	ok(t, store.Mark(ctx, "o", writable, retired))
	is(t, objectstore.Append(ctx, s, "o", "r", 2, nil), objectstore.ErrMarked)
	ok(t, store.Mark(ctx, "o", retired, live))
	ok(t, objectstore.Append(ctx, s, "o", "r", 2, nil))
	if tail, _, _ := s.Tail(ctx, "o", "r"); tail != 2 {
		t.Errorf("the tail is %d", tail)
	}
}
