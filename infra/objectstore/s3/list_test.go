package s3

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"penstock/infra/objectstore"
	"penstock/infra/testserver"
)

// plant puts objects into a bucket as somebody does who knows nothing of Penstock.
func plant(t *testing.T, b *bucket, contents map[string]string) {
	t.Helper()
	for key, content := range contents {
		if _, err := b.putBytes(t.Context(), key, []byte(content), noOptions); err != nil {
			t.Fatalf("%q: %v", key, err)
		}
	}
}

// all returns every key in a bucket with its content's ETag.
func all(t *testing.T, b *bucket) map[string]string {
	t.Helper()
	keys := map[string]string{}
	if err := b.list(t.Context(), "", false, func(i objectInfo) error { keys[i.Key] = i.ETag; return nil }); err != nil {
		t.Fatal(err)
	}
	return keys
}

func owners(t *testing.T, s *Store) []string {
	t.Helper()
	var names []string
	if err := s.Owners(t.Context(), func(owner string, _ objectstore.Mark) error {
		names = append(names, owner)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

func names(l objectstore.Listing) (out []string) {
	for _, o := range l.Objects {
		out = append(out, o.Name)
	}
	return out
}

// TestPlain: what was in a bucket becomes its owners' data, and nothing else is
// touched.
func TestPlain(t *testing.T) {
	ctx := t.Context()
	s := open(t, options(t))
	foreign := map[string]string{
		"some/where-else/alice/a": "above the prefix", "some/file": "above too", "some/where/loose": "beside the owners",
		"some/where/b64=YWxpY2U/a": "not how alice is written", "some/where/.penstock-x/a": "like ours",
		"some/where/alice/.penstock/x": "no name of an object", "some/where/.penstock/doc/Foreign": "no document of ours",
	}
	plain := map[string]string{
		"some/where/alice/a": "1", "some/where/alice/photos/1.jpg": "22", "some/where/alice/b": "333",
		"some/where/bob@example.com/x": "x", "some/where/b64=YS9i/deep/er": "of a/b", "some/where/größe/ü ?&#+%2f": "odd",
	}
	plant(t, s.b, foreign)
	plant(t, s.b, plain)
	before := all(t, s.b)
	if got, want := owners(t, s), []string{"a/b", "alice", "bob@example.com", "größe"}; !slices.Equal(got, want) {
		t.Errorf("owners are %q, want %q", got, want)
	}
	l, err := s.List(ctx, "alice")
	if err != nil || !slices.Equal(names(l), []string{"a", "b", "photos/1.jpg"}) || l.Bytes != 6 || l.Mark != (objectstore.Mark{}) {
		t.Errorf("alice has %+v, %v", l, err)
	}
	for owner, object := range map[string]string{"größe": "ü ?&#+%2f", "a/b": "deep/er"} {
		if l, err := s.List(ctx, owner); err != nil || !slices.Equal(names(l), []string{object}) {
			t.Errorf("%s has %+v, %v", owner, l, err)
		}
	}
	if after := all(t, s.b); !maps.Equal(before, after) {
		t.Error("reading has changed something")
	}
	// Writing makes a document; the rest stays as it lies.
	if _, err := s.Put(ctx, "alice", "a", strings.NewReader("new"), objectstore.Mark{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(ctx, "alice", "b", objectstore.Mark{}); err != nil {
		t.Fatal(err)
	}
	again, err := s.List(ctx, "alice")
	if err != nil || !slices.Equal(names(again), []string{"a", "photos/1.jpg"}) || again.Version == l.Version {
		t.Errorf("alice has %+v, %v", again, err)
	}
	retired := objectstore.Mark{State: objectstore.Retired, Version: 1, Site: "east"}
	if err := s.Mark(ctx, "alice", objectstore.Mark{}, retired); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(ctx, "alice", retired); err != nil {
		t.Fatal(err)
	}
	if got := owners(t, s); slices.Contains(got, "alice") || len(got) != 3 {
		t.Errorf("owners are %q", got)
	}
	after := all(t, s.b)
	for key := range plain {
		if _, there := after[key]; there == strings.HasPrefix(key, "some/where/alice/") {
			t.Errorf("%s is there: %v", key, there)
		}
	}
	for key := range foreign {
		if after[key] != before[key] {
			t.Errorf("foreign %s was touched", key)
		}
	}
}

// TestOverwritten: a plain object that somebody replaces behind Penstock's back is
// not passed off as the old one, and not deleted.
func TestOverwritten(t *testing.T) {
	ctx := t.Context()
	s := open(t, options(t))
	plant(t, s.b, map[string]string{"some/where/alice/a": "1", "some/where/alice/b": "2"})
	if err := s.Create(ctx, "alice", objectstore.Mark{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(ctx, "alice", "c", strings.NewReader("3"), objectstore.Mark{}); err != nil {
		t.Fatal(err)
	}
	plant(t, s.b, map[string]string{"some/where/alice/a": "another's"})
	if _, err := s.Digest(ctx, "alice", "a"); !errors.Is(err, ErrOverwritten) {
		t.Errorf("digest: %v", err)
	}
	if err := s.Delete(ctx, "alice", objectstore.Mark{}); err != nil {
		t.Fatal(err)
	}
	left := all(t, s.b)
	if _, there := left["some/where/alice/a"]; !there {
		t.Error("another's object was deleted")
	}
	if _, there := left["some/where/alice/b"]; there {
		t.Error("an object of the deleted owner is left")
	}
}

// TestPages: listings of more than the 1,000 keys that one answer holds are whole,
// also when one of the answers is lost.
func TestPages(t *testing.T) {
	const n = 1_100
	server := testserver.VersityGW(t)
	p := newProxy(t, nil)
	o := p.options(t)
	o.Clock = newRushed()
	b := open(t, o).b
	// As files, since a request for each would take longer than all else here.
	file := func(key string) {
		path := filepath.Join(server.Folder(o.Bucket), filepath.FromSlash(key))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		file(fmt.Sprintf("some/where/owner-%04d/x", i))
		file(fmt.Sprintf("some/where/many/%04d", i))
		file(b.layout.blobs("many") + element(fmt.Sprintf("ID%04d", i)))
	}
	second := func() fault {
		return once(1, func(r *http.Request) bool { return r.URL.Query().Get("continuation-token") != "" },
			func(http.ResponseWriter, *http.Request, func() *answered) bool { return cut() })
	}
	seen := map[string]int{}
	p.set(second())
	err := b.list(t.Context(), string(b.layout), true, func(i objectInfo) error { seen[i.Key]++; return nil })
	check(t, p, "folders", seen, err, n+2)
	clear(seen)
	p.set(second())
	err = b.Plain(t.Context(), "many", func(name, _ string, _ int64, version string) error {
		if seen[name]++; version == "" {
			t.Errorf("%s has no version", name)
		}
		return nil
	})
	check(t, p, "plain objects", seen, err, n)
	clear(seen)
	p.set(second())
	err = b.Blobs(t.Context(), "many", func(id string, _ time.Time) error { seen[id]++; return nil })
	check(t, p, "blobs", seen, err, n)
}

func check(t *testing.T, p *proxy, what string, seen map[string]int, err error, want int) {
	t.Helper()
	if requests := p.requests(http.MethodGet); requests < 3 {
		t.Errorf("%s: only %d requests: one page, or none was lost", what, requests)
	}
	if err != nil || len(seen) != want {
		t.Errorf("%d %s were listed, want %d (%v)", len(seen), what, want, err)
	}
	for key, times := range seen {
		if times != 1 {
			t.Fatalf("%s: %s was listed %d times", what, key, times)
		}
	}
}

// TestOwnersStop: an error of the caller's ends the listing and is returned.
func TestOwnersStop(t *testing.T) {
	b := open(t, options(t)).b
	plant(t, b, map[string]string{"some/where/alice/a": "1", "some/where/bob/a": "1"})
	stop := errors.New("stop")
	calls := 0
	if err := b.Owners(t.Context(), func(string) error { calls++; return stop }); !errors.Is(err, stop) || calls != 1 {
		t.Errorf("%d calls, %v", calls, err)
	}
}
