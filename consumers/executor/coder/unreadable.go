package coder

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"sync"

	"penstock/consumers/executor/coder/catalog"
)

// maxLost is the most versions that a scrub names.
const maxLost = 1000

// maxUnreadable is of how many versions it is remembered that they are unreadable, so
// that none counts twice.
const maxUnreadable = 100_000

// unreadable are the versions known to be unreadable: those that the last scrub found, and
// those that reads have found since it began. They are forgotten once they are gone, and when
// the process ends.
type unreadable struct {
	mu     sync.Mutex
	found  map[string]uint64 // by id: during which scrub it was found last
	scrubs uint64            // that have begun
	beyond int64             // that the last scrub found beyond maxUnreadable
}

// note says that a version was found unreadable. It tells whether that is news, and
// whether there is room for it.
func (u *unreadable) note(id string) (news, kept bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, known := u.found[id]
	if !known && len(u.found) >= maxUnreadable {
		return true, false
	}
	if u.found == nil {
		u.found = make(map[string]uint64)
	}
	u.found[id] = u.scrubs
	return !known, true
}

// renew keeps a version, if it is known, that a scrub could not look at.
func (u *unreadable) renew(id string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, known := u.found[id]; known {
		u.found[id] = u.scrubs
	}
}

// begin begins a scrub, and gives its number.
func (u *unreadable) begin() uint64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.scrubs++
	return u.scrubs
}

// end ends a scrub that has looked at all versions: what was found before it and not
// since is forgotten.
func (u *unreadable) end(scrub uint64, beyond int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for id, last := range u.found {
		if last < scrub {
			delete(u.found, id)
		}
	}
	u.beyond = beyond
}

// mostForgotten is of how many versions it is looked at a time whether they are still there.
const mostForgotten = 1000

// forget forgets versions that are gone: objects that were deleted or written again. Of many
// it looks at some, drawn anew each time.
func (u *unreadable) forget(gone func(id string) bool) {
	var look []string
	u.mu.Lock()
	for id := range u.found {
		if len(look) == mostForgotten {
			break
		}
		look = append(look, id)
	}
	u.mu.Unlock()
	look = slices.DeleteFunc(look, func(id string) bool { return !gone(id) })
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, id := range look {
		delete(u.found, id)
	}
}

// isGone tells whether nothing has a version as its content any more.
func (c *Coder) isGone(version string) bool {
	_, _, err := c.catalog.Version(version)
	return errors.Is(err, catalog.ErrNoVersion)
}

func (u *unreadable) count() int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return int64(len(u.found)) + u.beyond
}

// answered tells whether every strip of the segment that landed was read and is whole or
// not: no store has failed that may have more of it.
func (f *fetch) answered() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, blob := range f.blobs() {
		for i := range blob.Count {
			if s := f.strips[blob.First+i]; s != stripWhole && s != stripBad {
				return false
			}
		}
	}
	return true
}

// lost notes that a read has found too few whole strips, and logs it once for each version.
func (f *fetch) lost(err error) {
	if !errors.Is(err, ErrTooFew) || !f.answered() {
		return
	}
	if news, kept := f.c.unreadable.note(f.v.ID); news && kept {
		f.c.log.Warn().Str("key", f.v.Key).Str("version", f.v.ID).Int("segment", f.segment).Err(err).
			Msg("a read found a version unreadable: too few of its strips are whole")
	}
}

// lost counts a version that is unreadable, and names it if there is room.
func (s *scrubbing) lost(v *held, unsure bool) error {
	s.report.Unreadable++
	if unsure {
		s.c.unreadable.renew(v.ID)
	} else if _, kept := s.c.unreadable.note(v.ID); !kept {
		s.beyond++
	}
	if len(s.report.Lost) == maxLost {
		return nil
	}
	name, err := s.c.nameOf(v.Key, v.ID)
	if err != nil {
		return catalogError(err)
	}
	name.Unsure = unsure
	s.report.Lost = append(s.report.Lost, name)
	s.c.log.Warn().Str("bucket", name.Bucket).Str("key", name.Key).Str("version", name.Version).
		Int("part", name.Part).Str("upload", name.Upload).Bool("unsure", unsure).
		Msg("scrub found a version unreadable: too few of its strips are whole")
	return nil
}

// end puts the names in order. A scrub that has looked at all versions replaces what was
// known of them.
func (s *scrubbing) end(all bool) {
	slices.SortFunc(s.report.Lost, Name.compare)
	if more := s.report.Unreadable - int64(len(s.report.Lost)); more > 0 {
		s.c.log.Warn().Int64("more", more).Msg("scrub found more versions unreadable than it names")
	}
	if all {
		s.c.unreadable.end(s.number, s.beyond)
	}
}

func (n Name) compare(o Name) int {
	return cmp.Or(
		strings.Compare(n.Bucket, o.Bucket), strings.Compare(n.Key, o.Key), strings.Compare(n.Upload, o.Upload),
		cmp.Compare(n.Part, o.Part), strings.Compare(n.Version, o.Version),
	)
}

// nameOf finds what a version is the content of: an object, or a part of one or of an
// upload under way. A version knows its key, but not its bucket.
func (c *Coder) nameOf(key, id string) (Name, error) {
	for after := ""; ; {
		buckets, err := c.catalog.Buckets("", after, maxList)
		if err != nil {
			return Name{}, err
		}
		for _, b := range buckets {
			after = b.Name
			name, found, err := c.nameIn(b.Name, key, id)
			if err != nil && !errors.Is(err, catalog.ErrNoBucket) {
				return Name{}, err
			}
			if found {
				return name, nil
			}
		}
		if len(buckets) < maxList {
			return Name{Key: key, Version: id}, nil
		}
	}
}

// nameIn looks in one bucket.
func (c *Coder) nameIn(bucket, key, id string) (n Name, found bool, err error) {
	n = Name{Bucket: bucket, Key: key, Version: id}
	r, err := c.catalog.Get(bucket, key)
	if err != nil && !errors.Is(err, catalog.ErrNoKey) {
		return n, false, err
	}
	for _, p := range r.Parts {
		if p.Version == id {
			n.Part = p.Number
			return n, true, nil
		}
	}
	for in := (catalog.ListUploadsInput{Bucket: bucket, Prefix: key, Max: maxList}); ; {
		page, err := c.catalog.ListUploads(in)
		if err != nil {
			return n, false, err
		}
		for _, u := range page.Uploads {
			if u.Key != key { // those of the key itself come first
				return n, false, nil
			}
			if n.Part, err = c.partOf(u, id); err != nil || n.Part > 0 {
				n.Upload = u.ID
				return n, err == nil, err
			}
		}
		if !page.Truncated {
			return n, false, nil
		}
		in.AfterKey, in.AfterID = page.NextKey, page.NextID
	}
}

// partOf is the number of the part of an upload that a version is, 0 if it is none.
func (c *Coder) partOf(u Upload, id string) (int, error) {
	parts, _, err := c.catalog.Parts(u.Bucket, u.Key, u.ID, 0, MaxParts)
	if errors.Is(err, catalog.ErrNoUpload) {
		return 0, nil // completed or aborted meanwhile
	}
	i := slices.IndexFunc(parts, func(p Part) bool { return p.Version == id })
	if err != nil || i < 0 {
		return 0, err
	}
	return parts[i].Number, nil
}
