package locations

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/infra/objectstore"
	"penstock/infra/objectstore/dir"
	"penstock/infra/objectstore/objectstoretest"
	"penstock/schemas/control"
)

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var t0 = time.Date(2015, 5, 17, 10, 0, 0, 123e3, time.UTC)

func at(site string, version uint64) control.Location {
	return control.Location{Site: site, Version: version, State: control.Live, Since: t0}
}

// eachTable runs a test over the bus and over memory.
func eachTable(t *testing.T, f func(*testing.T, Table)) {
	t.Run("memory", func(t *testing.T) { f(t, NewMemory()) })
	t.Run("bus", func(t *testing.T) {
		b := bustest.Start(t, func(o *bus.Options) { o.Prefix, o.Sync = "P", bus.SyncInterval })
		kv, err := Open(t.Context(), bustest.Client(t, b))
		ok(t, err)
		f(t, kv)
	})
}

func all(t *testing.T, table Table) map[string]control.Location {
	t.Helper()
	out := map[string]control.Location{}
	ok(t, table.List(t.Context(), func(owner string, l control.Location) error {
		out[owner] = l
		return nil
	}))
	return out
}

func TestTable(t *testing.T) {
	eachTable(t, func(t *testing.T, table Table) {
		ctx := t.Context()
		if len(all(t, table)) != 0 {
			t.Error("a new table has entries")
		}
		// JSON holds text only.
		names := objectstoretest.Names[:len(objectstoretest.Names)-1]
		for i, owner := range names {
			if l, revision, err := table.Get(ctx, owner); err != nil || revision != 0 || l != (control.Location{}) {
				t.Fatalf("an absent owner is at %+v, %d, %v", l, revision, err)
			}
			revision, err := table.Set(ctx, owner, at("a", uint64(i)), 0)
			ok(t, err)
			if _, err := table.Set(ctx, owner, at("b", 9), 0); !errors.Is(err, ErrConflict) {
				t.Fatalf("a second first entry: %v", err)
			}
			next, err := table.Set(ctx, owner, at("b", uint64(i+1)), revision)
			ok(t, err)
			if _, err := table.Set(ctx, owner, at("c", 9), revision); !errors.Is(err, ErrConflict) {
				t.Fatalf("an entry under an old revision: %v", err)
			}
			l, got, err := table.Get(ctx, owner)
			if err != nil || got != next || l != at("b", uint64(i+1)) {
				t.Fatalf("owner %.40q is at %+v, %d, %v", owner, l, got, err)
			}
		}
		got := all(t, table)
		for i, owner := range names {
			if got[owner] != at("b", uint64(i+1)) {
				t.Errorf("owner %.40q is listed at %+v", owner, got[owner])
			}
		}
		stop := errors.New("enough")
		if err := table.List(ctx, func(string, control.Location) error { return stop }); !errors.Is(err, stop) || len(got) != len(names) {
			t.Errorf("listed %d, stopped with %v", len(got), err)
		}
	})
}

func TestUnreadableEntry(t *testing.T) {
	b := bustest.Start(t)
	c := bustest.Client(t, b)
	kv, err := Open(t.Context(), c)
	ok(t, err)
	raw, err := c.KV(t.Context(), "locations")
	ok(t, err)
	_, err = raw.PutString(t.Context(), "o", `{"site":""}`)
	ok(t, err)
	if _, _, err := kv.Get(t.Context(), "o"); !errors.Is(err, control.ErrUndecodable) {
		t.Errorf("get: %v", err)
	}
	if err := kv.List(t.Context(), nil); !errors.Is(err, control.ErrUndecodable) {
		t.Errorf("list: %v", err)
	}
}

func TestExportImport(t *testing.T) {
	eachTable(t, func(t *testing.T, table Table) {
		pinned := at("b", 7)
		pinned.Pinned = true
		for owner, l := range map[string]control.Location{"z": at("a", 0), "a@b.c": pinned, "new\nline, \"quoted\"": at("a", 2), "ü": at("a", 1)} {
			_, err := table.Set(t.Context(), owner, l, 0)
			ok(t, err)
		}
		var out, again bytes.Buffer
		n, err := Export(t.Context(), &out, table, CSV)
		if err != nil || n != 4 {
			t.Fatal(n, err)
		}
		if !strings.HasPrefix(out.String(), "owner,site,version,state,since,pinned\na@b.c,b,7,live,2015-05-17T10:00:00.000123Z,true\n") {
			t.Errorf("exported %s", out.String())
		}
		copied := NewMemory()
		rep, err := Import(t.Context(), bytes.NewReader(out.Bytes()), copied, ImportOptions{Strict: true, Sites: []string{"a", "b"}})
		if err != nil || rep.Rows != 4 || rep.Written != 4 {
			t.Fatal(rep, err)
		}
		_, err = Export(t.Context(), &again, copied, CSV)
		if err != nil || again.String() != out.String() {
			t.Errorf("after a round trip %s (%v)", again.String(), err)
		}
		rep, err = Import(t.Context(), bytes.NewReader(out.Bytes()), table, ImportOptions{})
		if err != nil || rep.Unchanged != 4 || rep.Written != 0 {
			t.Errorf("again: %+v, %v", rep, err)
		}
	})
}

func TestImportBadRows(t *testing.T) {
	const text = "site,owner,version,pinned,since,state\n" +
		"a,fine,,,,\n" +
		"a,,,,,\n" +
		"nowhere,o2,,,,\n" +
		"a,o3,-1,,,\n" +
		"a,o4,,perhaps,,\n" +
		"a,o5,,,yesterday,\n" +
		"a,o6,,,,moving\n" +
		"a,o7\n" +
		"b,fine,,,,\n" +
		"a,also \"fine\",3,true,2015-05-17T10:00:00Z,live\n" +
		"b,there,,,,\n" +
		"a,there2,,true,,\n" +
		"a,\xff,,,,\n"
	want := []string{
		"3 field owner", "4 field site", "5 field version", "6 field pinned", "7 field since", "8 field state",
		"9 2 fields", "10 field owner", "11 not a location: parse error", "12 field site",
		"14 field owner",
	}
	table := NewMemory()
	for _, owner := range []string{"there", "there2"} {
		_, err := table.Set(t.Context(), owner, at("a", 4), 0)
		ok(t, err)
	}
	o := ImportOptions{Sites: []string{"a", "b"}, Now: t0}
	rep, err := Import(t.Context(), strings.NewReader(text), table, o)
	ok(t, err)
	if rep.Rows != 13 || rep.Written != 2 || rep.Unused != 11 || rep.Unchanged != 0 || len(rep.Bad) != len(want) {
		t.Errorf("account %+v", rep)
	}
	for i, b := range rep.Bad {
		if got := fmt.Sprint(b.Line, " ", b.Err); !strings.HasPrefix(got, want[i]) || !errors.Is(b.Err, ErrRow) {
			t.Errorf("bad row %d: %s, want %s…", i, got, want[i])
		}
	}
	if l := all(t, table)["there2"]; !l.Pinned || l.Version != 4 {
		t.Errorf("there2 is at %+v", l)
	}
	strict := NewMemory()
	o.Strict = true
	if _, err := Import(t.Context(), strings.NewReader(text), strict, o); !errors.Is(err, ErrRow) || len(all(t, strict)) > 0 {
		t.Errorf("strict: %v, and wrote %v", err, all(t, strict))
	}
	over := ImportOptions{Overwrite: true, Now: t0}
	if _, err := Import(t.Context(), strings.NewReader("owner,site\nthere,b\n"), table, over); err != nil {
		t.Error(err)
	}
	if l := all(t, table)["there"]; l != at("b", 5) {
		t.Errorf("overwritten: %+v", l)
	}
	for _, head := range []string{"", "owner\n", "owner,site,colour\n", "owner,site,owner\n"} {
		if _, err := Import(t.Context(), strings.NewReader(head), table, o); err == nil {
			t.Errorf("header %q is taken", head)
		}
	}
}

func FuzzImport(f *testing.F) {
	f.Add("owner,site\no,a\n")
	f.Add("owner,site,version,state,since,pinned\n\"o\nx\",a,1,live,2015-05-17T10:00:00Z,true\n")
	f.Fuzz(func(t *testing.T, text string) {
		table := NewMemory()
		rep, err := Import(context.Background(), strings.NewReader(text), table, ImportOptions{Now: t0})
		if err != nil {
			return
		}
		if rep.Rows != rep.Written+rep.Unchanged+rep.Unused || len(all(t, table)) != rep.Written {
			t.Fatalf("account %+v, %d entries", rep, len(all(t, table)))
		}
	})
}

func TestVerify(t *testing.T) {
	absent := objectstore.Mark{State: objectstore.Absent}
	incoming := func(v uint64) objectstore.Mark {
		return objectstore.Mark{State: objectstore.Incoming, Version: v, By: "m"}
	}
	live := func(v uint64) objectstore.Mark { return objectstore.Mark{State: objectstore.Live, Version: v} }
	retired := func(v uint64) objectstore.Mark {
		return objectstore.Mark{State: objectstore.Retired, Version: v, Site: "b"}
	}
	var free objectstore.Mark
	tests := map[string]struct {
		a, b objectstore.Mark
		at   control.Location
		want string
	}{
		"never moved":   {a: free, b: absent},
		"moved":         {a: retired(3), b: live(3), at: at("b", 3)},
		"deleted":       {a: absent, b: live(3), at: at("b", 3)},
		"imported":      {a: absent, b: free, at: at("b", 0)},
		"being moved":   {a: free, b: incoming(1)},
		"no copy":       {a: absent, b: absent, at: at("b", 3), want: "b missing"},
		"only retired":  {a: retired(3), b: absent, want: " ambiguous"},
		"two":           {a: free, b: free, want: " ambiguous"},
		"second":        {a: free, b: live(3), at: at("b", 3), want: "a second-live"},
		"fenced":        {a: absent, b: retired(4), at: at("b", 3), want: "b not-live"},
		"not settled":   {a: retired(3), b: incoming(3), at: at("b", 3), want: "b unsettled"},
		"left over":     {a: incoming(2), b: live(3), at: at("b", 3), want: "a leftover"},
		"no such site":  {a: absent, b: absent, at: at("x", 3), want: "x unknown-site"},
		"not journaled": {a: retired(2), b: live(3), at: at("b", 3), want: "a unjournalled"},
	}
	table := NewMemory()
	stores := map[string]objectstore.Store{}
	for _, site := range []string{"a", "b"} {
		s, err := dir.Open(t.TempDir(), dir.Options{NoSync: true})
		ok(t, err)
		stores[site] = s
	}
	healthy := 0
	for owner, c := range tests {
		for site, m := range map[string]objectstore.Mark{"a": c.a, "b": c.b} {
			if m != absent {
				ok(t, stores[site].Mark(t.Context(), owner, absent, m))
			}
		}
		if c.at.Site != "" {
			_, err := table.Set(t.Context(), owner, c.at, 0)
			ok(t, err)
		}
		if c.want == "" {
			healthy++
		}
	}
	journal := func(owner, site string) bool { return site == "a" && owner != "not journaled" }
	rep, err := Verify(t.Context(), table, stores, journal)
	ok(t, err)
	got := map[string]string{}
	for i, p := range rep.Problems {
		got[p.Owner] += p.Site + " " + string(p.Fault)
		if p.Text == "" || i > 0 && rep.Problems[i-1].Owner > p.Owner {
			t.Errorf("problem %+v", p)
		}
	}
	for owner, c := range tests {
		if got[owner] != c.want {
			t.Errorf("%s: %q, want %q", owner, got[owner], c.want)
		}
	}
	if rep.Owners != len(tests) || rep.Live != healthy || rep.Incoming != 1 || rep.Retired != 4 {
		t.Errorf("report %+v", rep)
	}
	if again, err := Verify(t.Context(), table, stores, nil); err != nil || len(again.Problems) != len(rep.Problems)-1 {
		t.Errorf("without a journal: %+v, %v", again.Problems, err)
	}
}
