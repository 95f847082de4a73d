package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"penstock/consumers/executor/coder/catalog"
	"penstock/consumers/executor/coder/catalog/catalogtest"
	"penstock/consumers/executor/coder/object"
)

// TestFailedCommit lets the disk be full: who wrote is told, nothing has changed, and when
// there is room the catalog goes on without being opened again.
func TestFailedCommit(t *testing.T) {
	t.Parallel()
	c := open(t)
	put := bucket(t, c)
	must(t, put("key", "one"))
	before, seq := c.Stats(), c.Seq()
	c.Full(true)
	var err error
	for i := 0; err == nil && i < 1000; i++ {
		before, seq = c.Stats(), c.Seq()
		err = c.CreateUpload(t.Context(), catalog.Upload{
			Bucket: "b", Key: "key", ID: fmt.Sprint(i), Created: catalogtest.Epoch,
			Metadata: map[string]string{"m": strings.Repeat("x", 10_000)},
		})
	}
	if !errors.Is(err, catalog.ErrFull) {
		t.Fatalf("got error %v", err)
	}
	if c.Stats() != before || c.Seq() != seq {
		t.Errorf("stats %+v at %d, want %+v at %d", c.Stats(), c.Seq(), before, seq)
	}
	c.Full(false)
	must(t, put("key", "two"))
	report, err := c.Check(t.Context())
	must(t, err)
	if report.Found > 0 || report.Stored.Objects != 1 || report.Stored.Versions != 1 || report.Stored.Deletes != 2 {
		t.Errorf("%+v", report)
	}
}

// TestShippedChangesGo keeps changes until they are shipped, and not after.
func TestShippedChangesGo(t *testing.T) {
	t.Parallel()
	c := open(t)
	put := bucket(t, c)
	for i := range 10 {
		must(t, put("key", fmt.Sprint(i)))
	}
	batch, err := c.ReadLog(0, 1<<20)
	must(t, err)
	if batch.First != 1 || batch.Last != 21 || c.Seq() != 21 {
		t.Errorf("changes %d … %d of %d", batch.First, batch.Last, c.Seq())
	}
	rest := batch.Changes
	for want := uint64(1); len(rest) > 0; want++ {
		var change catalog.Change
		change, rest, err = catalog.ReadChange(rest)
		must(t, err)
		if change.Seq != want || len(change.Rows) == 0 {
			t.Fatalf("change %d with %d rows, want %d", change.Seq, len(change.Rows), want)
		}
	}
	small, err := c.ReadLog(4, 1)
	must(t, err)
	if small.First != 5 || small.Last != 5 {
		t.Errorf("changes %d … %d", small.First, small.Last)
	}
	c.Shipped(15)
	c.Shipped(3)
	must(t, put("key", "more"))
	if c.ShippedSeq() != 15 {
		t.Errorf("shipped %d", c.ShippedSeq())
	}
	_, err = c.ReadLog(14, 1)
	wants(t, err, catalog.ErrTrimmed)
	batch, err = c.ReadLog(15, 1<<20)
	must(t, err)
	if batch.First != 16 || batch.Last != 23 {
		t.Errorf("changes %d … %d", batch.First, batch.Last)
	}
	batch, err = c.ReadLog(23, 1)
	must(t, err)
	if batch.First != 24 || batch.Last != 23 || len(batch.Changes) > 0 {
		t.Errorf("changes %d … %d of none", batch.First, batch.Last)
	}
}

// TestManyParts completes the largest upload there is, or a smaller one where PENSTOCK_WHOLE
// doesn't ask for all, and deletes it again.
func TestManyParts(t *testing.T) {
	t.Parallel()
	c := open(t)
	bucket(t, c)
	ctx := t.Context()
	must(t, c.CreateUpload(ctx, catalog.Upload{Bucket: "b", Key: "key", ID: "u", Created: catalogtest.Epoch}))
	n := 1000
	if os.Getenv("PENSTOCK_WHOLE") != "" {
		n = 10_000
	}
	errs := make(chan error, 50)
	for w := range 50 {
		go func() {
			var err error
			for i := 1 + w; i <= n && err == nil; i += 50 {
				v := catalogtest.Version(fmt.Sprintf("v%05d", i), 1, 1, "")
				err = errors.Join(
					c.Begin(ctx, catalog.Intent{ID: v.ID, Since: catalogtest.Epoch, Places: v.Places}),
					c.PutPart(ctx, catalog.PartInput{
						Bucket: "b", Key: "key", Upload: "u", Version: v, Intents: []string{v.ID},
						Part: catalog.Part{Number: i, Size: 1, ETag: v.ETag, Modified: catalogtest.Epoch},
					}))
			}
			errs <- err
		}()
	}
	for range 50 {
		must(t, <-errs)
	}
	in := catalog.CompleteInput{Bucket: "b", Key: "key", Upload: "u", Modified: catalogtest.Epoch}
	for i := range n {
		in.Parts = append(in.Parts, catalog.PartRef{Number: i + 1})
	}
	r, err := c.CompleteUpload(ctx, in)
	must(t, err)
	if r.Size != int64(n) || len(r.Parts) != n || !strings.HasSuffix(r.ETag, fmt.Sprint("-", n)) {
		t.Errorf("record of %d bytes in %d parts, %s", r.Size, len(r.Parts), r.ETag)
	}
	page, err := c.List(catalog.ListInput{Bucket: "b", Max: 1})
	must(t, err)
	if page.Records[0].Parts != n {
		t.Errorf("listed %+v", page.Records[0])
	}
	held, err := c.Hold("b", "key")
	must(t, err)
	_, err = c.Delete(ctx, "b", "key", nil)
	must(t, err)
	list, next, err := c.Deletes("s0", "", 10)
	must(t, err)
	if len(list) != 0 || (next != "") != (n > 5000) {
		t.Errorf("%d to delete while held, then %q", len(list), next)
	}
	held.Release()
	var places []object.Place
	for next = "start"; next != ""; {
		list, next, err = c.Deletes("s0", strings.TrimPrefix(next, "start"), 3000)
		must(t, err)
		for _, d := range list {
			places = append(places, d.Place)
		}
	}
	must(t, c.Deleted(ctx, places...))
	if got, want := c.Stats(), (catalog.Stats{Buckets: 1}); got != want {
		t.Errorf("stats %+v", got)
	}
}

func TestCompleteRefuses(t *testing.T) {
	t.Parallel()
	c := open(t)
	bucket(t, c)
	ctx := t.Context()
	must(t, c.CreateUpload(ctx, catalog.Upload{Bucket: "b", Key: "key", ID: "u", Created: catalogtest.Epoch}))
	for i := 1; i <= 3; i++ {
		v := catalogtest.Version(fmt.Sprint("v", i), int64(i*100), 1, "")
		must(t, c.Begin(ctx, catalog.Intent{ID: v.ID, Since: catalogtest.Epoch, Places: v.Places}))
		must(t, c.PutPart(ctx, catalog.PartInput{
			Bucket: "b", Key: "key", Upload: "u", Version: v, Intents: []string{v.ID},
			Part: catalog.Part{Number: i, Size: v.Shape.Size, ETag: "5d41402abc4b2a76b9719d911017c592", Modified: catalogtest.Epoch},
		}))
	}
	seq := c.Seq()
	refs := func(numbers ...int) (list []catalog.PartRef) {
		for _, n := range numbers {
			list = append(list, catalog.PartRef{Number: n})
		}
		return list
	}
	mine := errors.New("mine")
	for name, tc := range map[string]struct {
		in   catalog.CompleteInput
		want error
	}{
		"no parts":   {catalog.CompleteInput{}, catalog.ErrPart},
		"order":      {catalog.CompleteInput{Parts: refs(2, 1)}, catalog.ErrPartOrder},
		"twice":      {catalog.CompleteInput{Parts: refs(1, 1)}, catalog.ErrPartOrder},
		"missing":    {catalog.CompleteInput{Parts: refs(1, 4)}, catalog.ErrPart},
		"number":     {catalog.CompleteInput{Parts: refs(65_537)}, catalog.ErrPart},
		"etag":       {catalog.CompleteInput{Parts: []catalog.PartRef{{Number: 1, ETag: "x"}}}, catalog.ErrPart},
		"size":       {catalog.CompleteInput{Parts: refs(1, 2), MinPart: 101}, catalog.ErrPartSize},
		"finish":     {catalog.CompleteInput{Parts: refs(1), Finish: func(*catalog.Record, []catalog.Part) error { return mine }}, mine},
		"condition":  {catalog.CompleteInput{Parts: refs(1), If: func(*catalog.Record) error { return mine }}, mine},
		"no upload":  {catalog.CompleteInput{Parts: refs(1), Upload: "v"}, catalog.ErrNoUpload},
		"no bucket":  {catalog.CompleteInput{Parts: refs(1), Bucket: "c"}, catalog.ErrNoBucket},
		"odd upload": {catalog.CompleteInput{Parts: refs(1), Upload: "u\x00"}, catalog.ErrNoUpload},
	} {
		in := tc.in
		in.Key, in.Modified = "key", catalogtest.Epoch
		if in.Bucket == "" {
			in.Bucket = "b"
		}
		if in.Upload == "" {
			in.Upload = "u"
		}
		if _, err := c.CompleteUpload(ctx, in); !errors.Is(err, tc.want) {
			t.Errorf("%s: got error %v, want %v", name, err, tc.want)
		}
	}
	if c.Seq() != seq {
		t.Error("a refusal changed something")
	}
	in := catalog.CompleteInput{Bucket: "b", Key: "key", Upload: "u", Parts: refs(1, 3), MinPart: 100, Modified: catalogtest.Epoch}
	r, err := c.CompleteUpload(ctx, in)
	must(t, err)
	// The MD5 of the MD5 of "hello" twice.
	if r.ETag != "616b22817b80eed9f65c3aa38cd29054-2" {
		t.Errorf("etag %s", r.ETag)
	}
	if c.Stats().Deletes != 1 || c.Stats().Versions != 2 {
		t.Errorf("stats %+v", c.Stats())
	}
}

func TestBuckets(t *testing.T) {
	t.Parallel()
	c := open(t)
	for _, name := range []string{"b", "a", "a-2", "a-1"} {
		must(t, c.CreateBucket(t.Context(), catalog.Bucket{Name: name, Created: catalogtest.Epoch}))
	}
	names := func(prefix, after string, limit int) (names []string) {
		list, err := c.Buckets(prefix, after, limit)
		must(t, err)
		for _, b := range list {
			if !b.Created.Equal(catalogtest.Epoch) {
				t.Errorf("%+v", b)
			}
			names = append(names, b.Name)
		}
		return names
	}
	if got := names("", "", 10); !slices.Equal(got, []string{"a", "a-1", "a-2", "b"}) {
		t.Error(got)
	}
	if got := names("a", "a", 1); !slices.Equal(got, []string{"a-1"}) {
		t.Error(got)
	}
	if got := names("a-", "a-1", 10); !slices.Equal(got, []string{"a-2"}) {
		t.Error(got)
	}
	_, err := c.Bucket("c")
	wants(t, err, catalog.ErrNoBucket)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wants(t, c.DeleteBucket(ctx, "a"), context.Canceled)
}

// TestCompareFinds a byte in one value, a row, and a change that differ.
func TestCompareFinds(t *testing.T) {
	t.Parallel()
	same := func(etag string, more bool) *catalog.Catalog {
		c := open(t)
		put := bucket(t, c)
		must(t, put("key", "v", func(in *catalog.PutInput) { in.Record.ETag = etag }))
		if more {
			must(t, put("other", "w"))
		}
		return c
	}
	must(t, catalog.Compare(same("x", true), same("x", true)))
	for name, other := range map[string]*catalog.Catalog{"value": same("y", false), "row": same("x", true)} {
		if err := catalog.Compare(same("x", false), other); err == nil {
			t.Errorf("%s: no difference was found", name)
		}
	}
}

// TestStrays gives what Discard would queue, and changes nothing.
func TestStrays(t *testing.T) {
	t.Parallel()
	c := open(t)
	put := bucket(t, c)
	must(t, put("key", "v"))
	v, _, err := c.Version("v")
	must(t, err)
	stray := object.Place{Store: "s0", Key: "c/b/v.9"}
	seq := c.Seq()
	got, err := c.Strays(t.Context(), "v", append(v.Places, stray, stray)...)
	must(t, err)
	if !slices.Equal(got, []object.Place{stray}) || c.Seq() != seq {
		t.Errorf("strays %v", got)
	}
}
