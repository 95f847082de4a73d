package s3

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"penstock/infra/objectstore"
	"penstock/infra/objectstore/objectstoretest"
	"penstock/infra/objectstore/s3/wire"
)

// TestKeys is the layout, by example.
func TestKeys(t *testing.T) {
	l := newLayout("some/where")
	long := strings.Repeat("a", 201)
	for _, test := range []struct{ got, want string }{
		{l.doc("alice"), "some/where/.penstock/doc/alice"},
		{l.doc("a.b@example.com"), "some/where/.penstock/doc/a_2eb_40example_2ecom"},
		{l.doc("Case"), "some/where/.penstock/doc/_43ase"},
		{l.doc("größe/文"), "some/where/.penstock/doc/gr_c3_b6_c3_9fe_2f_e6_96_87"},
		{l.doc(".."), "some/where/.penstock/doc/_2e_2e"},
		{l.doc(long), "some/where/.penstock/doc/__a92efd82109373e58f9a2056dee01e807e216ce6075f7051207c0a9f7d666e50"},
		{l.plain("alice"), "some/where/alice/"},
		{l.plain("a@b.com"), "some/where/a@b.com/"},
		{l.plain("a/b"), "some/where/b64=YS9i/"},
		{l.plain(".penstock"), "some/where/b64=LnBlbnN0b2Nr/"},
		{l.plain("b64=x"), "some/where/b64=YjY0PXg/"},
		{newLayout("").doc("alice"), ".penstock/doc/alice"},
		{newLayout("").plain("alice"), "alice/"},
	} {
		if test.got != test.want {
			t.Errorf("%s, want %s", test.got, test.want)
		}
	}
	key, etag := l.blob("alice", "Ab-1_")
	if key != "some/where/.penstock/blob/alice/_41b-1_5f" || etag != "" {
		t.Errorf("a blob is %s, %q", key, etag)
	}
	key, etag = l.blob("alice", plainID("photos/1.jpg", `x/y"z`))
	if key != "some/where/alice/photos/1.jpg" || etag != `x/y"z` {
		t.Errorf("a plain object is %s, %q", key, etag)
	}
}

// TestElements: elements are short, in the few characters that every service and
// file system keeps apart, and lead back to the name or to a hash.
func TestElements(t *testing.T) {
	seen := map[string]string{}
	check := func(t interface {
		Errorf(string, ...any)
	}, s string,
	) {
		e := element(s)
		if len(e) > longest || e == "" || strings.Trim(e, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			t.Errorf("%.60q is written %q", s, e)
		}
		if before, has := seen[e]; has && before != s {
			t.Errorf("%.60q and %.60q are both written %q", s, before, e)
		}
		seen[e] = s
		back, foreign, ok := name(e)
		if foreign || ok == strings.HasPrefix(e, hashed) || ok && back != s {
			t.Errorf("%.60q is written %q, which is %.60q, %v, %v", s, e, back, foreign, ok)
		}
	}
	for _, owner := range objectstoretest.Names {
		check(t, owner)
	}
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.Byte(), 1, objectstore.MaxOwner).Draw(t, "owner")
		check(t, string(b))
		check(t, rapid.StringMatching(`[a-zA-Z0-9._@-]{1,80}`).Draw(t, "id"))
	})
}

// TestLongestKey: the longest names make keys that services take.
func TestLongestKey(t *testing.T) {
	l := newLayout(strings.Repeat("p/", wire.MaxPrefix/2-1) + "pp")
	longOwner := strings.Repeat("A", objectstore.MaxOwner)
	longID := strings.Repeat("_", 64)
	for _, owner := range []string{longOwner, strings.Repeat("A", 66), strings.Repeat("a", longest)} {
		if key, _ := l.blob(owner, longID); len(key) > maxKey {
			t.Errorf("a key of %d bytes", len(key))
		}
	}
}

func FuzzName(f *testing.F) {
	for _, s := range []string{"alice", "_43ase", "_", "__", "_4", "_61", "__" + strings.Repeat("0", 64), "Case", ".x.sgwtmp.1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, e string) {
		s, foreign, ok := name(e)
		if ok && foreign {
			t.Error("a name of a foreign element")
		}
		if ok && element(s) != e {
			t.Errorf("%q is %q, which is written %q", e, s, element(s))
		}
	})
}

func FuzzPlainOwner(f *testing.F) {
	for _, s := range []string{"alice", "b64=YS9i", "b64=YWxpY2U", "b64=", ".penstock", "..", "a b", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, e string) {
		owner, ok := plainOwner(e)
		if ok && plainElement(owner) != e {
			t.Errorf("%q is of %q, which lies at %q", e, owner, plainElement(owner))
		}
		if e != "" && len(e) <= objectstore.MaxOwner && !strings.Contains(e, "/") {
			if back, ok := plainOwner(plainElement(e)); !ok || back != e {
				t.Errorf("owner %q lies at %q, which is of %q", e, plainElement(e), back)
			}
		}
		if ok && nameable(e) && !utf8.ValidString(e) {
			t.Error("not UTF-8")
		}
	})
}
