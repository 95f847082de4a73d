package locations

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/infra/objectstore"
	"penstock/infra/objectstore/dir"
)

// TestDecidersHearOfBytes: what a file says is stored goes to deciders with the
// location, also when it is said of entries that stand already, and not into the
// table or an export.
func TestDecidersHearOfBytes(t *testing.T) {
	c := bustest.Client(t, bustest.Start(t, func(o *bus.Options) { o.Prefix, o.Sync = "P", bus.SyncInterval }))
	kv, err := Open(t.Context(), c)
	ok(t, err)
	o := ImportOptions{Now: t0, Tell: NewTeller(c, "ann@host", t0).Tell}
	run := func(csv, want string) {
		t.Helper()
		rep, err := Import(t.Context(), strings.NewReader(csv), kv, o)
		if err != nil || rep.Unused > 0 {
			t.Fatal(rep, err)
		}
		var got []string
		for _, x := range told(t, c) {
			got = append(got, fmt.Sprint(x.Owner, " ", x.Bytes))
		}
		slices.Sort(got) // Those of one import come in any order.
		if strings.Join(got, ", ") != want {
			t.Errorf("told of %v, expected %s", got, want)
		}
	}
	run("owner,site\na,x\nb,x\n", "a 0, b 0")
	run("owner,bytes,site\na,12,x\nb,,x\n", "a 0, a 12, b 0")
	run("owner,bytes,site\na,12,x\nb,0,x\n", "a 0, a 12, b 0")
	run("owner,bytes,site\na,13,x\nc,9223372036854775807,x\n", "a 0, a 12, a 13, b 0, c 9223372036854775807")
	var out strings.Builder
	_, err = Export(t.Context(), &out, kv, CSV)
	ok(t, err)
	if !strings.HasPrefix(out.String(), "owner,site,version,state,since,pinned\na,x,0,live,") {
		t.Errorf("exported %s", out.String())
	}
}

func TestBytesThatAreNone(t *testing.T) {
	for text, want := range map[string]string{
		"-1":                  `field bytes: got "-1", expected 0 or more`,
		"1.5":                 `field bytes: got "1.5", expected a number of bytes from 0`,
		"9223372036854775808": `field bytes: got "9223372036854775808", expected a number of bytes from 0`,
	} {
		rep, err := Import(t.Context(), strings.NewReader("owner,site,bytes\na,x,"+text+"\n"), NewMemory(), ImportOptions{})
		ok(t, err)
		if rep.Unused != 1 || !strings.HasPrefix(rep.Bad[0].Err.Error(), want) {
			t.Errorf("%s: %+v", text, rep)
		}
	}
}

// failingList is a store that cannot list one owner.
type failingList struct {
	objectstore.Store
	owner string
	err   error
}

func (s *failingList) List(ctx context.Context, owner string) (objectstore.Listing, error) {
	if owner == s.owner {
		return objectstore.Listing{}, s.err
	}
	return s.Store.List(ctx, owner)
}

// TestMeasure: a row from stores says what all objects of its copy have, and one
// store that does not list fails the whole, so that no owner counts as empty.
func TestMeasure(t *testing.T) {
	stores := map[string]objectstore.Store{}
	for _, site := range []string{"a", "b"} {
		s, err := dir.Open(t.TempDir(), dir.Options{NoSync: true})
		ok(t, err)
		stores[site] = s
	}
	put := func(site, owner, name, body string) {
		_, err := stores[site].Put(t.Context(), owner, name, strings.NewReader(body), objectstore.Mark{})
		ok(t, err)
	}
	want := map[string]int64{"empty": 0, "gone": 0}
	ok(t, stores["b"].Create(t.Context(), "empty", objectstore.Mark{}))
	put("b", "gone", "x", "12345")
	put("a", "two", "x", "12345")
	put("b", "two", "x", "12345")
	for i := range 3 * listers {
		owner := fmt.Sprint("owner", i)
		put("a", owner, "x", strings.Repeat("x", i))
		put("a", owner, "y", "123")
		want[owner] = int64(i + 3)
	}
	rows, err := FromStores(t.Context(), stores)
	ok(t, err)
	ok(t, stores["b"].Delete(t.Context(), "gone", objectstore.Mark{}))
	var calls []int
	ok(t, rows.Measure(t.Context(), func(done, of int) {
		if calls = append(calls, done); of != len(want)+1 {
			t.Errorf("of %d", of)
		}
	}))
	if len(calls) != len(want)+1 || !slices.IsSorted(calls) {
		t.Errorf("progress %v", calls)
	}
	got := map[string]int64{}
	o := ImportOptions{Tell: func(_ context.Context, entries []Entry) error {
		for _, e := range entries {
			got[e.Owner] = e.Bytes
		}
		return nil
	}}
	_, err = ImportRows(t.Context(), rows, NewMemory(), o)
	ok(t, err)
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("told of %v, expected %v", got, want)
	}

	away := errors.New("away")
	stores["a"] = &failingList{stores["a"], "owner7", away}
	rows, err = FromStores(t.Context(), stores)
	ok(t, err)
	if err := rows.Measure(t.Context(), nil); !errors.Is(err, away) || !strings.Contains(err.Error(), `"owner7" at a`) {
		t.Errorf("got %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := rows.Measure(ended, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
