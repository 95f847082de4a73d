package manifest

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"penstock/infra/objectstore"
)

// document is all that is known of one owner's copy. It is never removed: that of
// a deleted copy says so, which keeps a writer with an old revision from bringing
// the copy back.
type document struct {
	header
	entries []entry // ascending by name
}

// header is the part of a document that doesn't grow with the owner's data.
type header struct {
	// Identity is given to a copy when it comes into being; no two copies have
	// the same.
	Identity string `json:"identity,omitempty"`
	// Counter counts the changes of the copy's objects.
	Counter uint64 `json:"counter"`
	// Changes counts the times that this document was written.
	Changes uint64           `json:"changes"`
	Mark    objectstore.Mark `json:"mark"`
	// Left is the mark of the copy that was here last, if it had been moved away
	// when it was deleted. A copy that comes into being takes it off.
	Left  *objectstore.Mark `json:"left,omitempty"`
	Lease *lease            `json:"lease,omitempty"`
	// Ops names the latest changes, so that one whose acknowledgement was lost
	// can be told from one that was never made.
	Ops []string `json:"ops,omitempty"`
	// Condemned are blobs that no document may name any more and that are being
	// deleted; Sweeps counts how often some were condemned.
	Condemned []string `json:"condemned,omitempty"`
	Sweeps    uint64   `json:"sweeps,omitempty"`
}

// lease is a hold. Its holder counts Beat up while it lives. Times are not
// compared between machines: whoever waits breaks a lease when it has seen the
// same beat for TTLMillis by its own clock.
type lease struct {
	ID        string `json:"id"`
	Beat      uint64 `json:"beat"`
	TTLMillis int64  `json:"ttl_ms"`
}

// entry is one object.
type entry struct {
	name    string
	blob    string
	size    int64
	sum     [32]byte // SHA-256, all zero if not known
	version string   // of plain objects; else the blob's id
}

// maxOps is how many changes a document remembers.
const maxOps = 16

func absent() objectstore.Mark { return objectstore.Mark{State: objectstore.Absent} }

// absentDocument is what stands for an owner that has none.
func absentDocument() *document { return &document{header: header{Mark: absent()}} }

func (d *document) absent() bool { return d.Mark.State == objectstore.Absent }

// begin makes a new, empty copy of an absent one.
func (d *document) begin(m objectstore.Mark) {
	d.Identity, d.Counter, d.Mark, d.Left, d.entries = newID(), 0, m, nil, nil
}

// end makes the copy absent and condemns its blobs.
func (d *document) end() {
	for i := range d.entries {
		d.Condemned = append(d.Condemned, d.entries[i].blob)
	}
	if len(d.entries) > 0 {
		d.Sweeps++
	}
	if d.Mark.State == objectstore.Retired {
		left := d.Mark
		d.Left = &left
	}
	d.Identity, d.Counter, d.Mark, d.Lease, d.entries = "", 0, absent(), nil, nil
}

// moved refuses a write that was on its way to a copy which was moved and deleted
// meanwhile: what it would begin here is no copy that anybody reads.
func (d *document) moved(owner string, as objectstore.Mark) error {
	if d.absent() && d.Left != nil {
		return &objectstore.MarkedError{Owner: owner, Have: *d.Left, Want: as}
	}
	return nil
}

// admit checks that the copy bears the mark that the caller needs, and begins a
// copy if there is none and any will do.
func (d *document) admit(owner string, as objectstore.Mark) error {
	if err := d.admits(owner, as); err != nil {
		return err
	}
	if d.absent() {
		d.begin(objectstore.Mark{})
	}
	return nil
}

// admits is admit without the beginning.
func (d *document) admits(owner string, as objectstore.Mark) error {
	if as == (objectstore.Mark{}) {
		if d.Mark.Writable() || d.absent() {
			return nil
		}
	} else if d.Mark == as && !d.absent() {
		return nil
	}
	return &objectstore.MarkedError{Owner: owner, Have: d.Mark, Want: as}
}

// find returns where an object is or would be.
func (d *document) find(name string) (int, bool) {
	return slices.BinarySearchFunc(d.entries, name, func(e entry, name string) int {
		return strings.Compare(e.name, name)
	})
}

// set puts an object in its place and returns what it was, zero if it wasn't
// there.
func (d *document) set(e entry) (old entry) {
	d.Counter++
	i, ok := d.find(e.name)
	if ok {
		old, d.entries[i] = d.entries[i], e
		d.replaced(old)
		return old
	}
	d.entries = slices.Insert(d.entries, i, e)
	return old
}

// unset removes an object and returns what it was.
func (d *document) unset(name string) (old entry, ok bool) {
	i, ok := d.find(name)
	if !ok {
		return old, false
	}
	d.Counter++
	old = d.entries[i]
	d.entries = slices.Delete(d.entries, i, i+1)
	d.replaced(old)
	return old, true
}

// replaced condemns a plain object that is none of the copy's any more: no
// listing of blobs would find it again.
func (d *document) replaced(old entry) {
	if old.plain() {
		d.condemn([]string{old.blob})
	}
}

// did notes that the document is being written by the change named op.
func (d *document) did(op string) {
	d.Changes++
	if len(d.Ops) >= maxOps {
		d.Ops = slices.Delete(d.Ops, 0, len(d.Ops)-maxOps+1)
	}
	d.Ops = append(d.Ops, op)
}

// condemn adds to Condemned those of the blobs that no object is and that aren't
// there yet, and reports whether there were any.
func (d *document) condemn(blobs []string) bool {
	known := make(map[string]bool, len(d.entries)+len(d.Condemned))
	for i := range d.entries {
		known[d.entries[i].blob] = true
	}
	for _, b := range d.Condemned {
		known[b] = true
	}
	n := len(d.Condemned)
	for _, b := range blobs {
		if !known[b] {
			d.Condemned = append(d.Condemned, b)
		}
	}
	if len(d.Condemned) == n {
		return false
	}
	d.Sweeps++
	return true
}

// absolve takes blobs that were deleted off Condemned.
func (d *document) absolve(blobs map[string]bool) bool {
	n := len(d.Condemned)
	d.Condemned = slices.DeleteFunc(d.Condemned, func(b string) bool { return blobs[b] })
	return len(d.Condemned) < n
}

// version is that of the whole.
func (d *document) version() string { return d.Identity + "." + strconv.FormatUint(d.Counter, 36) }

func (d *document) listing() objectstore.Listing {
	l := objectstore.Listing{Mark: d.Mark, Version: d.version(), Objects: make([]objectstore.Object, len(d.entries))}
	for i := range d.entries {
		l.Objects[i] = d.entries[i].object()
		l.Bytes += d.entries[i].size
	}
	return l
}

func (e *entry) object() objectstore.Object {
	o := objectstore.Object{Name: e.name, Size: e.size, Version: e.version, Digest: e.digest()}
	if o.Version == "" {
		o.Version = e.blob
	}
	return o
}

// plain reports that the object was there before Penstock.
func (e *entry) plain() bool { return e.version != "" }

// digest is the SHA-256 in hex, empty if it isn't known.
func (e *entry) digest() string {
	if e.sum == ([32]byte{}) {
		return ""
	}
	return fmt.Sprintf("%x", e.sum)
}

// adopt is the document of an owner whose objects lay there before Penstock. Its
// identity follows from them, so that it is the same until one changes.
func adopt(entries []entry) *document {
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	h := xxhash.New()
	for i := range entries {
		_, _ = h.WriteString(entries[i].name + "\x00" + entries[i].version + "\x00")
	}
	return &document{header: header{Identity: "plain-" + strconv.FormatUint(h.Sum64(), 36)}, entries: entries}
}

// newID returns a name that nothing else has: 96 random bits in [A-Za-z0-9_-].
func newID() string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // it never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// blobIDBytes are six of milliseconds since 1970 and nine random ones.
const blobIDBytes = 15

// newBlob returns a fresh id that says when it was made.
func newBlob(now time.Time) string {
	var b [blobIDBytes]byte
	binary.BigEndian.PutUint64(b[:8], uint64(now.UnixMilli())<<16)
	_, _ = rand.Read(b[6:])
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// Made returns when the id of a blob was made, by the clock of whoever made it;
// false if it is no id of a Store. It is there for backends that can't tell when
// a blob was last changed.
func Made(id string) (time.Time, bool) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(id)
	if err != nil || len(b) != blobIDBytes {
		return time.Time{}, false
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint64(b[:8]) >> 16)), true
}
