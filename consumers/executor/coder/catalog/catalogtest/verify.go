package catalogtest

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"penstock/consumers/executor/coder/catalog"
	"penstock/consumers/executor/coder/object"
)

// Verify compares everything that the catalog says with the model.
func (d *Driver) Verify(ctx context.Context) error {
	report, err := d.Catalog.Check(ctx)
	if err != nil {
		return err
	}
	if report.Found > 0 {
		return fmt.Errorf("check: %s", strings.Join(report.Problems, "\n"))
	}
	if got, want := d.Catalog.Stats(), d.stats(); got != want {
		return fmt.Errorf("stats: %+v, want %+v", got, want)
	}
	for _, verify := range []func() error{d.verifyObjects, d.verifyJournal, d.verifyUploads, d.verifyListings} {
		if err := verify(); err != nil {
			return err
		}
	}
	return nil
}

func (d *Driver) stats() catalog.Stats {
	s := catalog.Stats{
		Buckets: int64(len(d.buckets)), Objects: int64(len(d.objects)), Versions: int64(len(d.docs)),
		Deletes: int64(len(d.deletes)), Intents: int64(len(d.intents)), Uploads: int64(len(d.uploads)),
		Repeats: int64(len(d.repeats)),
	}
	for _, o := range d.objects {
		s.Bytes += o.size
	}
	for _, u := range d.uploads {
		for _, p := range u {
			s.Parts++
			s.PartBytes += p.size
		}
	}
	for _, r := range d.rests {
		if r.Staged {
			s.Staged++
		}
		if len(r.Lacking) > 0 {
			s.Lacking++
			s.LackingBlobs += int64(len(r.Lacking))
		}
	}
	return s
}

func (d *Driver) verifyObjects() error {
	for at, o := range d.objects {
		r, err := d.Catalog.Get(at[0], at[1])
		if err != nil {
			return err
		}
		var versions []string
		for _, p := range r.Parts {
			versions = append(versions, p.Version)
		}
		if r.Key != at[1] || r.Size != o.size || r.ETag != o.etag || !slices.Equal(versions, o.versions) {
			return fmt.Errorf("get %v: %+v, want %+v", at, r, o)
		}
	}
	for id, doc := range d.docs {
		v, rest, err := d.Catalog.Version(id)
		if err != nil {
			return err
		}
		if !slices.Equal(v.Places, doc.Places) || rest.Staged != d.rests[id].Staged || !slices.Equal(rest.Lacking, d.rests[id].Lacking) {
			return fmt.Errorf("version %s: %+v %+v, want %+v %+v", id, v, rest, doc, d.rests[id])
		}
	}
	ids, err := d.Catalog.Versions("", 1<<20)
	if err == nil && !slices.Equal(ids, sorted(d.docs)) {
		err = fmt.Errorf("versions: %v, want %v", ids, sorted(d.docs))
	}
	return err
}

func (d *Driver) verifyJournal() error {
	left := make(map[object.Place]bool)
	for store := range 10 {
		for after := ""; ; {
			list, next, err := d.Catalog.Deletes(fmt.Sprint("s", store), after, 3)
			if err != nil {
				return err
			}
			for _, x := range list {
				left[x.Place] = true
			}
			if after = next; after == "" {
				break
			}
		}
	}
	if !reflect.DeepEqual(left, d.deletes) {
		return fmt.Errorf("deletes: %v, want %v", left, d.deletes)
	}
	if err := d.verifyRepeats(); err != nil {
		return err
	}
	list, err := d.Catalog.Intents("", 1<<20)
	if err != nil || len(list) != len(d.intents) {
		return fmt.Errorf("intents: %v %w, want %v", list, err, d.intents)
	}
	for _, i := range list {
		if !slices.Equal(i.Places, d.intents[i.ID].Places) {
			return fmt.Errorf("intent %+v, want %+v", i, d.intents[i.ID])
		}
	}
	resting, err := d.Catalog.Rests("", 1<<20)
	if err != nil || len(resting) != len(d.rests) {
		return fmt.Errorf("rests: %v %w, want %v", resting, err, d.rests)
	}
	return nil
}

// verifyRepeats asks at some time for those that are due then.
func (d *Driver) verifyRepeats() error {
	now := Epoch.Add(time.Duration(d.Pick(d.ids+1)) * time.Second)
	due, first := make(map[object.Place]time.Time), time.Time{}
	got, passed := make(map[object.Place]time.Time), time.Time{}
	earlier := func(a, b time.Time) time.Time {
		if a.IsZero() || !b.IsZero() && b.Before(a) {
			return b
		}
		return a
	}
	for p, at := range d.repeats {
		if at.After(now) {
			first = earlier(first, at)
		} else {
			due[p] = at
		}
	}
	for store := range 10 {
		for after := ""; ; {
			list, next, at, err := d.Catalog.Repeats(fmt.Sprint("s", store), after, now, 3)
			if err != nil {
				return err
			}
			for _, r := range list {
				got[r.Place] = r.Due
			}
			passed = earlier(passed, at)
			if after = next; after == "" {
				break
			}
		}
	}
	if !reflect.DeepEqual(got, due) || !passed.Equal(first) {
		return fmt.Errorf("repeats: %v and %v, want %v and %v", got, passed, due, first)
	}
	return nil
}

func (d *Driver) verifyUploads() error {
	for at, want := range d.uploads {
		u, err := d.Catalog.Upload(at[0], at[1], at[2])
		if err != nil || u.Checksum != "SHA256" || !u.Composite || u.Metadata["m"] != "n" {
			return fmt.Errorf("upload %v: %+v %w", at, u, err)
		}
		var numbers []int
		for after, more := 0, true; more; {
			var list []catalog.Part
			if list, more, err = d.Catalog.Parts(at[0], at[1], at[2], after, 2); err != nil {
				return err
			}
			for _, p := range list {
				numbers, after = append(numbers, p.Number), p.Number
				if w := want[p.Number]; p.Size != w.size || p.ETag != w.etag || p.Version != w.versions[0] {
					return fmt.Errorf("part %v %+v, want %+v", at, p, w)
				}
			}
		}
		if !slices.Equal(numbers, sorted(want)) {
			return fmt.Errorf("parts of %v: %v, want %v", at, numbers, sorted(want))
		}
	}
	return nil
}

// verifyListings walks some bucket in pages, and compares with a listing that rolls up all
// keys there are.
func (d *Driver) verifyListings() error {
	bucket := pick(d, someBuckets)
	prefix, delimiter := pick(d, []string{"", "a", "a/", "b/", "c/", "zz"}), pick(d, []string{"", "/", "//", "\xc3\xbf", "b"})
	after := pick(d, append([]string{"", "", "", "c/", "a/b/", "0"}, someKeys...))
	most := 1 + d.Pick(4)
	keys, ids := make(map[string]bool), make(map[string]bool)
	for at := range d.objects {
		keys[at[1]] = keys[at[1]] || at[0] == bucket
	}
	for at := range d.uploads {
		if at[0] == bucket {
			ids[at[1]+" "+at[2]] = true
		}
	}
	var got, uploads []string
	var err error
	for marker, more := after, true; more && err == nil; {
		var page catalog.Listing
		page, err = d.Catalog.List(catalog.ListInput{Bucket: bucket, Prefix: prefix, Delimiter: delimiter, After: marker, Max: most})
		for _, r := range page.Records {
			got = append(got, r.Key)
		}
		got = append(got, page.Prefixes...)
		if n := len(page.Records) + len(page.Prefixes); n > most || (page.Truncated && n < most) {
			return fmt.Errorf("page of %d, want %d", n, most)
		}
		marker, more = page.Next, page.Truncated
	}
	if err := expect("list", err, unless(!d.buckets[bucket], catalog.ErrNoBucket)); err != nil || !d.buckets[bucket] {
		return err
	}
	for key, id, more := after, "", true; more; {
		page, err := d.Catalog.ListUploads(catalog.ListUploadsInput{
			Bucket: bucket, Prefix: prefix, Delimiter: delimiter, AfterKey: key, AfterID: id, Max: most,
		})
		if err != nil {
			return err
		}
		for _, u := range page.Uploads {
			uploads = append(uploads, u.Key+" "+u.ID)
		}
		uploads = append(uploads, page.Prefixes...)
		key, id, more = page.NextKey, page.NextID, page.Truncated
	}
	for key, there := range keys {
		if !there {
			delete(keys, key)
		}
	}
	slices.Sort(got)
	slices.Sort(uploads)
	if want := rolled(keys, prefix, delimiter, after); !slices.Equal(got, want) {
		return fmt.Errorf("list %q %q after %q: %q, want %q", prefix, delimiter, after, got, want)
	}
	if want := rolled(ids, prefix, delimiter, after); !slices.Equal(uploads, want) {
		return fmt.Errorf("uploads %q %q after %q: %q, want %q", prefix, delimiter, after, uploads, want)
	}
	return nil
}

// rolled is a listing by the words of S3: of keys, perhaps with a space and an id.
func rolled(all map[string]bool, prefix, delimiter, after string) []string {
	items := make(map[string]bool)
	for item := range all {
		key, _, _ := strings.Cut(item, " ")
		if !strings.HasPrefix(key, prefix) {
			continue
		}
		if i := strings.Index(key[len(prefix):], delimiter); delimiter != "" && i >= 0 {
			key = key[:len(prefix)+i+len(delimiter)]
			item = key
		}
		if key > after {
			items[item] = true
		}
	}
	return slices.Sorted(func(yield func(string) bool) {
		for item := range items {
			if !yield(item) {
				return
			}
		}
	})
}
