package catalogtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"penstock/consumers/executor/coder/catalog"
	"penstock/consumers/executor/coder/object"
)

// Driver makes changes to a catalog and to a model of it, and compares what they say.
type Driver struct {
	Catalog *catalog.Catalog
	// Pick gives a number of 0 … n−1: all that is left to chance.
	Pick func(n int) int

	ids     int
	buckets map[string]bool
	objects map[[2]string]entry
	uploads map[[3]string]map[int]entry
	rests   map[string]catalog.Rest
	docs    map[string]*object.Version
	intents map[string]catalog.Intent
	deletes map[object.Place]bool
	repeats map[object.Place]time.Time
}

// entry is an object, or a part of an upload.
type entry struct {
	size     int64
	etag     string
	versions []string
}

// NewDriver begins with an empty catalog.
func NewDriver(c *catalog.Catalog, pick func(n int) int) *Driver {
	return &Driver{
		Catalog: c, Pick: pick, buckets: make(map[string]bool), objects: make(map[[2]string]entry),
		uploads: make(map[[3]string]map[int]entry), rests: make(map[string]catalog.Rest),
		docs: make(map[string]*object.Version), intents: make(map[string]catalog.Intent), deletes: make(map[object.Place]bool),
		repeats: make(map[object.Place]time.Time),
	}
}

// Reopened goes on with the catalog as Open gave it after a Close.
func (d *Driver) Reopened(c *catalog.Catalog) {
	d.Catalog = c
	for id := range d.intents {
		d.abandon(id)
	}
}

// Step makes one change, or tries one that must fail. It returns what was not as the model
// says.
func (d *Driver) Step(ctx context.Context) error {
	steps := []func(context.Context) error{
		d.put, d.put, d.put, d.put, d.begin, d.begin, d.giveUp, d.remove, d.remove, d.amend, d.lack, d.landed, d.settle, d.settle,
		d.deleted, d.again, d.repeated, d.discard, d.createUpload, d.putPart, d.putPart, d.putPart, d.complete, d.abort,
		d.createBucket, d.deleteBucket,
	}
	return steps[d.Pick(len(steps))](ctx)
}

// expect returns an error unless err is the sentinel, or nil for none.
func expect(what string, err, want error) error {
	if (want == nil) != (err == nil) || !errors.Is(err, want) {
		return fmt.Errorf("%s: got error %w, want %w", what, err, want)
	}
	return nil
}

// unless gives the first sentinel whose condition holds.
func unless(pairs ...any) error {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i].(bool) {
			return pairs[i+1].(error)
		}
	}
	return nil
}

var (
	someBuckets = []string{"a", "b", "b-2"}
	someKeys    = []string{
		"a", "a/", "a/b", "a/b/c", "a/b/d", "a0", "b", "b/\xc3\xbf", "b/\xc3\xbf/x", "c//d", "c//e", "c/d", "z\x01", "\xf4\x8f\xbf\xbf",
	}
)

func pick[T any](d *Driver, list []T) T { return list[d.Pick(len(list))] }

// sorted is the keys of a map in an order that doesn't depend on the map.
func sorted[K comparable, V any](m map[K]V) []K {
	return slices.SortedFunc(maps.Keys(m), func(a, b K) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
}

func (d *Driver) id() string {
	d.ids++
	return fmt.Sprintf("v%06d", d.ids)
}

func (d *Driver) createBucket(ctx context.Context) error {
	name := pick(d, someBuckets)
	err := d.Catalog.CreateBucket(ctx, catalog.Bucket{Name: name, Created: Epoch})
	want := unless(d.buckets[name], catalog.ErrBucketExists)
	d.buckets[name] = true
	return expect("create bucket", err, want)
}

func (d *Driver) deleteBucket(ctx context.Context) error {
	name := pick(d, someBuckets)
	full := false
	for at := range d.objects {
		full = full || at[0] == name
	}
	for at := range d.uploads {
		full = full || at[0] == name
	}
	err := d.Catalog.DeleteBucket(ctx, name)
	want := unless(!d.buckets[name], catalog.ErrNoBucket, full, catalog.ErrBucketNotEmpty)
	if want == nil {
		delete(d.buckets, name)
	}
	return expect("delete bucket", err, want)
}

// begun opens the intent of a new version.
func (d *Driver) begun(ctx context.Context, id string, v *object.Version) error {
	i := catalog.Intent{ID: id, Since: Epoch, Places: v.Places}
	d.intents[id] = i
	return expect("begin", d.Catalog.Begin(ctx, i), nil)
}

func (d *Driver) begin(ctx context.Context) error {
	if len(d.intents) > 0 && d.Pick(3) == 0 {
		i := d.intents[pick(d, sorted(d.intents))]
		if err := expect("begin again", d.Catalog.Begin(ctx, i), catalog.ErrTaken); err != nil {
			return err
		}
		again := catalog.Intent{ID: d.id(), Since: Epoch, Places: i.Places}
		if len(i.Places) == 0 {
			return nil
		}
		return expect("begin at a taken place", d.Catalog.Begin(ctx, again), catalog.ErrPlace)
	}
	if len(d.deletes) > 0 && d.Pick(3) == 0 {
		queued := catalog.Intent{ID: d.id(), Since: Epoch, Places: []object.Place{pick(d, sorted(d.deletes))}}
		return expect("begin at a place to delete", d.Catalog.Begin(ctx, queued), catalog.ErrPlace)
	}
	if len(d.repeats) > 0 && d.Pick(3) == 0 {
		gone := catalog.Intent{ID: d.id(), Since: Epoch, Places: []object.Place{pick(d, sorted(d.repeats))}}
		return expect("begin at a place to delete once more", d.Catalog.Begin(ctx, gone), catalog.ErrPlace)
	}
	id := d.id()
	return d.begun(ctx, id, Version(id, 10, 2, ""))
}

func (d *Driver) giveUp(ctx context.Context) error {
	if len(d.intents) == 0 {
		return nil
	}
	id := pick(d, sorted(d.intents))
	if d.Pick(3) == 0 {
		delete(d.intents, id)
		return expect("forget", d.Catalog.Forget(ctx, id, "none", id), nil)
	}
	d.abandon(id)
	return expect("abandon", d.Catalog.Abandon(ctx, id, "none", id), nil)
}

func (d *Driver) abandon(id string) {
	for _, p := range d.intents[id].Places {
		d.deletes[p] = true
	}
	delete(d.intents, id)
}

// drop is what becomes of versions whose record is gone.
func (d *Driver) drop(versions []string) {
	for _, id := range versions {
		for _, p := range d.docs[id].Places {
			d.deletes[p] = true
		}
		delete(d.docs, id)
		delete(d.rests, id)
	}
}

// spares are places of a version's intent that no store was asked to write, and that some
// store was, which the version has neither of.
func spares(id string) (unwritten, written object.Place) {
	return object.Place{Store: "s7", Key: id + ".7"}, object.Place{Store: "s8", Key: id + ".8"}
}

// written is a version with an open intent, and perhaps blobs that are still to come.
func (d *Driver) written(ctx context.Context) (v *object.Version, rest catalog.Rest, err error) {
	id := d.id()
	v = Version(id, int64(d.Pick(3)*100), 1+d.Pick(3), "")
	if len(v.Places) > 0 && d.Pick(3) == 0 {
		rest = catalog.Rest{Staged: d.Pick(2) == 0, Lacking: []int{d.Pick(len(v.Places))}}
	}
	intent := *v
	unwritten, written := spares(id)
	intent.Places = append(slices.Clone(v.Places), unwritten, written)
	return v, rest, d.begun(ctx, id, &intent)
}

// committed is what becomes of a version that was put.
func (d *Driver) committed(v *object.Version, rest catalog.Rest) {
	delete(d.intents, v.ID)
	d.docs[v.ID] = v
	_, written := spares(v.ID)
	d.deletes[written] = true
	if !rest.None() {
		d.rests[v.ID] = rest
	}
}

func (d *Driver) put(ctx context.Context) error {
	bucket, key := pick(d, someBuckets), pick(d, someKeys)
	v, rest, err := d.written(ctx)
	if err != nil {
		return err
	}
	at := [2]string{bucket, key}
	old, there := d.objects[at]
	unwritten, _ := spares(v.ID)
	in := catalog.PutInput{
		Bucket: bucket, Version: v, Intents: []string{v.ID}, Unwritten: []object.Place{unwritten}, Rest: rest,
		Record: catalog.Record{
			Key: key, Size: v.Shape.Size, ETag: v.ID, Modified: Epoch, Metadata: map[string]string{"x": key, "a": "b"},
			Headers: catalog.Headers{ContentType: "text/plain"}, Checksums: []catalog.Checksum{{Algorithm: "CRC32C", Value: "AAAA"}},
		},
	}
	refused := d.Pick(4) == 0
	if refused {
		in.If = func(now *catalog.Record) error {
			if now == nil {
				return nil
			}
			return fmt.Errorf("%w: %s", catalog.ErrPrecondition, now.ETag)
		}
	}
	want := unless(!d.buckets[bucket], catalog.ErrNoBucket, there && refused, catalog.ErrPrecondition)
	if err := expect("put", d.Catalog.Put(ctx, in), want); err != nil || want != nil {
		return err
	}
	d.committed(v, rest)
	d.drop(old.versions)
	d.objects[at] = entry{v.Shape.Size, v.ID, []string{v.ID}}
	return nil
}

func (d *Driver) remove(ctx context.Context) error {
	bucket, key := pick(d, someBuckets), pick(d, someKeys)
	at := [2]string{bucket, key}
	old, there := d.objects[at]
	was, err := d.Catalog.Delete(ctx, bucket, key, nil)
	if err := expect("delete", err, unless(!d.buckets[bucket], catalog.ErrNoBucket)); err != nil {
		return err
	}
	if was != there {
		return fmt.Errorf("delete %v: there was one %v, want %v", at, was, there)
	}
	d.drop(old.versions)
	delete(d.objects, at)
	return nil
}

func (d *Driver) amend(ctx context.Context) error {
	bucket, key := pick(d, someBuckets), pick(d, someKeys)
	at := [2]string{bucket, key}
	old, there := d.objects[at]
	etag := d.id()
	_, err := d.Catalog.Amend(ctx, bucket, key, func(r *catalog.Record) error {
		r.ETag, r.Size, r.Parts = etag, 7, nil // of which only the etag may change
		return nil
	})
	if there {
		old.etag = etag
		d.objects[at] = old
	}
	return expect("amend", err, unless(!d.buckets[bucket], catalog.ErrNoBucket, !there, catalog.ErrNoKey))
}

func (d *Driver) later() time.Time { return Epoch.Add(time.Duration(d.ids) * time.Second) }
