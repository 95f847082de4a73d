package catalogtest

import (
	"context"
	"fmt"
	"slices"

	"penstock/consumers/executor/coder/catalog"
	"penstock/consumers/executor/coder/object"
)

// someVersion is one that is there, with blobs, or none.
func (d *Driver) someVersion() (string, *object.Version) {
	if len(d.docs) == 0 {
		return "none", &object.Version{}
	}
	id := pick(d, sorted(d.docs))
	return id, d.docs[id]
}

func (d *Driver) lack(ctx context.Context) error {
	id, v := d.someVersion()
	blob := d.Pick(4)
	want := unless(len(d.docs) == 0, catalog.ErrNoVersion, blob >= len(v.Places), catalog.ErrInput)
	if want == nil {
		r := d.rests[id]
		r.Lacking = slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(r.Lacking), blob))))
		d.rests[id] = r
	}
	return expect("lack", d.Catalog.Lack(ctx, id, blob), want)
}

func (d *Driver) landed(ctx context.Context) error {
	id, _ := d.someVersion()
	blob := d.Pick(4)
	r, resting := d.rests[id]
	if resting {
		r.Lacking = slices.DeleteFunc(slices.Clone(r.Lacking), func(i int) bool { return i == blob })
		d.rests[id] = r
		if r.None() {
			delete(d.rests, id)
		}
	}
	return expect("landed", d.Catalog.Landed(ctx, id, blob), unless(len(d.docs) == 0, catalog.ErrNoVersion))
}

// settle gives a version other blobs, all or but the first, or finds it gone.
func (d *Driver) settle(ctx context.Context) error {
	id, old := d.someVersion()
	if d.Pick(4) == 0 {
		id = "gone"
	}
	mark := d.id()
	next := Version(id, old.Shape.Size, 1+d.Pick(3), "-"+mark)
	if len(old.Places) > 0 && d.Pick(2) == 0 {
		next.Places[0] = old.Places[0]
	}
	fresh := *next
	fresh.Places = slices.DeleteFunc(slices.Clone(next.Places), func(p object.Place) bool { return slices.Contains(old.Places, p) })
	fresh.Places = append(fresh.Places, object.Place{Store: "s9", Key: "spare" + mark})
	if err := d.begun(ctx, mark, &fresh); err != nil {
		return err
	}
	in := catalog.SettleInput{Version: id, Document: next, Intents: []string{mark}}
	if d.docs[id] == nil {
		d.abandon(mark)
		return expect("settle", d.Catalog.Settle(ctx, in), catalog.ErrNoVersion)
	}
	if err := expect("settle", d.Catalog.Settle(ctx, in), nil); err != nil {
		return err
	}
	delete(d.intents, mark)
	for _, p := range append(slices.Clone(old.Places), fresh.Places...) {
		if !slices.Contains(next.Places, p) {
			d.deletes[p] = true
		}
	}
	d.docs[id] = next
	delete(d.rests, id)
	return nil
}

func (d *Driver) deleted(ctx context.Context) error {
	var gone []object.Place
	for _, p := range sorted(d.deletes) {
		if d.Pick(2) == 0 {
			gone = append(gone, p)
			delete(d.deletes, p)
		}
	}
	return expect("deleted", d.Catalog.Deleted(ctx, append(gone, object.Place{Store: "no", Key: "ne"})...), nil)
}

// again says of some that are deleted that they may yet come.
func (d *Driver) again(ctx context.Context) error {
	var gone []object.Place
	due := d.later()
	for _, p := range sorted(d.deletes) {
		if d.Pick(2) == 0 {
			gone = append(gone, p)
			delete(d.deletes, p)
			d.repeats[p] = due
		}
	}
	return expect("again", d.Catalog.Again(ctx, due, append(gone, object.Place{Store: "no", Key: "ne"})...), nil)
}

func (d *Driver) repeated(ctx context.Context) error {
	var gone []object.Place
	for _, p := range sorted(d.repeats) {
		if d.Pick(2) == 0 {
			gone = append(gone, p)
			delete(d.repeats, p)
		}
	}
	return expect("repeated", d.Catalog.Repeated(ctx, append(gone, object.Place{Store: "no", Key: "ne"})...), nil)
}

func (d *Driver) discard(ctx context.Context) error {
	id, v := d.someVersion()
	stray := object.Place{Store: "s0", Key: "stray" + d.id()}
	found := append([]object.Place{stray}, v.Places...)
	if len(d.intents) > 0 {
		found = append(found, d.intents[pick(d, sorted(d.intents))].Places...)
	}
	for p := range d.repeats {
		found = append(found, p)
	}
	d.deletes[stray] = true
	n, err := d.Catalog.Discard(ctx, id, found...)
	if err == nil && n != 1 {
		return fmt.Errorf("discard: %d blobs, want the stray one", n)
	}
	return expect("discard", err, nil)
}

func (d *Driver) createUpload(ctx context.Context) error {
	u := catalog.Upload{
		Bucket: pick(d, someBuckets), Key: pick(d, someKeys), ID: fmt.Sprint("u", d.Pick(3)), Created: d.later(),
		Headers: catalog.Headers{ContentType: "text/html"}, Metadata: map[string]string{"m": "n"}, Checksum: "SHA256", Composite: true,
	}
	at := [3]string{u.Bucket, u.Key, u.ID}
	want := unless(!d.buckets[u.Bucket], catalog.ErrNoBucket, d.uploads[at] != nil, catalog.ErrTaken)
	if want == nil {
		d.uploads[at] = make(map[int]entry)
	}
	return expect("create upload", d.Catalog.CreateUpload(ctx, u), want)
}

// someUpload is one that is there, or none.
func (d *Driver) someUpload() ([3]string, error) {
	if len(d.uploads) == 0 || d.Pick(5) == 0 {
		at := [3]string{pick(d, someBuckets), pick(d, someKeys), "none"}
		return at, unless(!d.buckets[at[0]], catalog.ErrNoBucket, true, catalog.ErrNoUpload)
	}
	return pick(d, sorted(d.uploads)), nil
}

func (d *Driver) putPart(ctx context.Context) error {
	at, want := d.someUpload()
	v, rest, err := d.written(ctx)
	if err != nil {
		return err
	}
	number := 1 + d.Pick(7)
	unwritten, _ := spares(v.ID)
	in := catalog.PartInput{
		Bucket: at[0], Key: at[1], Upload: at[2], Version: v, Intents: []string{v.ID}, Unwritten: []object.Place{unwritten}, Rest: rest,
		Part: catalog.Part{Number: number, Size: v.Shape.Size, ETag: v.ETag, Modified: Epoch},
	}
	if err := expect("put part", d.Catalog.PutPart(ctx, in), want); err != nil || want != nil {
		return err
	}
	d.drop(d.uploads[at][number].versions)
	d.committed(v, rest)
	d.uploads[at][number] = entry{v.Shape.Size, v.ETag, []string{v.ID}}
	return nil
}

func (d *Driver) complete(ctx context.Context) error {
	at, want := d.someUpload()
	in := catalog.CompleteInput{Bucket: at[0], Key: at[1], Upload: at[2], MinPart: 100, Modified: Epoch}
	var done entry
	for _, n := range sorted(d.uploads[at]) {
		p := d.uploads[at][n]
		if d.Pick(4) == 0 {
			continue // one that the client doesn't name
		}
		in.Parts = append(in.Parts, catalog.PartRef{Number: n, ETag: p.etag})
		done.size += p.size
		done.versions = append(done.versions, p.versions...)
	}
	small := false
	for _, ref := range in.Parts[:max(0, len(in.Parts)-1)] {
		small = small || d.uploads[at][ref.Number].size < in.MinPart
	}
	wrong := len(in.Parts) > 0 && d.Pick(6) == 0
	if wrong {
		in.Parts[0].ETag = "wrong"
	}
	want = unless(want != nil, want, len(in.Parts) == 0 || wrong, catalog.ErrPart, small, catalog.ErrPartSize)
	r, err := d.Catalog.CompleteUpload(ctx, in)
	if err := expect("complete", err, want); err != nil || want != nil {
		return err
	}
	if r.Size != done.size || len(r.Parts) != len(in.Parts) || r.Headers.ContentType != "text/html" {
		return fmt.Errorf("complete: record %+v, want %d bytes", r, done.size)
	}
	done.etag = r.ETag
	key := [2]string{at[0], at[1]}
	d.drop(d.objects[key].versions)
	for _, p := range d.uploads[at] {
		if !slices.Contains(done.versions, p.versions[0]) {
			d.drop(p.versions)
		}
	}
	d.objects[key] = done
	delete(d.uploads, at)
	return nil
}

func (d *Driver) abort(ctx context.Context) error {
	at, want := d.someUpload()
	for _, p := range d.uploads[at] {
		d.drop(p.versions)
	}
	delete(d.uploads, at)
	return expect("abort", d.Catalog.AbortUpload(ctx, at[0], at[1], at[2]), want)
}
