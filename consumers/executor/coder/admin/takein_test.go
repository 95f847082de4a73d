package admin

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"penstock/consumers/executor/coder"
)

// TestTakeIn: the operator says that what a store held is lost; of others there is nothing
// to say.
func TestTakeIn(t *testing.T) {
	t.Parallel()
	w := setup(t, nil)
	ctx := t.Context()
	data := bytes.Repeat([]byte("x"), 5000)
	if _, err := w.Put(ctx, coder.PutInput{Bucket: "bucket", Key: "k", Body: bytes.NewReader(data), Size: 5000}); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"store-1": "store is not absent", "": "no store of this name", "store-9": "no store of this name"} {
		if _, err := w.client.TakeIn(ctx, name); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), text) {
			t.Errorf("%q: %v", name, err)
		}
	}
	list, err := w.stores[1].List(ctx, "", "", 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if err := w.stores[1].Memory.Delete(ctx, e.Key); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := w.client.TakeIn(ctx, "store-1"); err != nil || got.Store != "store-1" || got.Versions < 1 {
		t.Errorf("%+v, %v", got, err)
	}
	s, err := w.client.Status(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, st := range s.Stores {
		if st.Absent {
			t.Errorf("%+v", st)
		}
	}
}
