package catalog

import (
	"fmt"
	"math"
	"slices"
	"time"

	"penstock/consumers/executor/coder/field"
	"penstock/consumers/executor/coder/object"
)

// Intent says which blobs are about to be written.
type Intent struct {
	// ID is of the caller's choosing, often the version's. Two open intents never
	// have the same.
	ID string
	// Since is when it began, UTC in whole microseconds.
	Since  time.Time
	Places []object.Place
}

func (i *Intent) encode() []byte {
	b := appendNumber(field.AppendTime([]byte{valueFormat}, i.Since), len(i.Places))
	for _, p := range i.Places {
		b = field.AppendText(field.AppendText(b, p.Store), p.Key)
	}
	return b
}

func decodeIntent(id string, value []byte) (Intent, error) {
	f := read(value)
	i := Intent{ID: id, Since: f.Time("since")}
	for range f.Count("places", maxPlaces) {
		p := object.Place{Store: f.Text("store", maxStore), Key: f.Text("blob", maxKey)}
		if f.Fault() != "" {
			break
		}
		i.Places = append(i.Places, p)
	}
	return i, f.end("intent " + id)
}

func (i *Intent) validate() error {
	if err := checkName("intent", i.ID, maxID); err != nil {
		return err
	}
	if err := checkTime(i.Since); err != nil {
		return err
	}
	if len(i.Places) > maxPlaces {
		return fmt.Errorf("%w: %d places", ErrInput, len(i.Places))
	}
	for n, p := range i.Places {
		if err := checkPlace(p); err != nil {
			return err
		}
		if slices.Contains(i.Places[:n], p) {
			return fmt.Errorf("%w: %s/%s named twice", ErrPlace, p.Store, p.Key)
		}
	}
	return nil
}

func checkPlace(p object.Place) error {
	if err := checkName("store", p.Store, maxStore); err != nil {
		return err
	}
	return checkName("blob", p.Key, maxKey)
}

// Rest is what is left to do with a version that can already be read. The zero Rest is
// nothing.
type Rest struct {
	// Staged tells that it doesn't lie in its intended coding yet.
	Staged bool
	// Lacking are the blobs that aren't in their store, or not for certain, ascending:
	// indices of the version's places.
	Lacking []int
}

// None tells that nothing is left to do.
func (r Rest) None() bool { return !r.Staged && len(r.Lacking) == 0 }

func (r Rest) encode() []byte {
	b := appendNumber(appendBool([]byte{valueFormat}, r.Staged), len(r.Lacking))
	for _, i := range r.Lacking {
		b = appendNumber(b, i)
	}
	return b
}

func decodeRest(value []byte) (Rest, error) {
	f := read(value)
	r := Rest{Staged: f.bool("staged")}
	for range f.Count("lacking", maxBlobs) {
		i := f.Count("lacking", maxBlobs)
		if n := len(r.Lacking); n > 0 && i <= r.Lacking[n-1] {
			f.Fail("lacking: out of order")
		}
		if f.Fault() != "" {
			break
		}
		r.Lacking = append(r.Lacking, i)
	}
	if f.Fault() == "" && r.None() {
		f.Fail("nothing left to do")
	}
	return r, f.end("rest")
}

// of gives the rest as a row holds it, for a version of so many blobs.
func (r Rest) of(blobs int) (Rest, error) {
	r.Lacking = slices.Compact(slices.Sorted(slices.Values(r.Lacking)))
	if n := len(r.Lacking); n > 0 && (r.Lacking[0] < 0 || r.Lacking[n-1] >= blobs) {
		return Rest{}, fmt.Errorf("%w: blob %d of %d", ErrInput, r.Lacking[n-1], blobs)
	}
	return r, nil
}

// Resting is a version with something left to do.
type Resting struct {
	Version string
	Rest    Rest
}

// Deletion is a blob to delete.
type Deletion struct {
	Place object.Place
	// Version is the id of the version or intent that the blob was of.
	Version string
	seq     uint64 // of the change that queued it
}

// Change is the number of the change that queued the blob.
func (d Deletion) Change() uint64 { return d.seq }

func deletionKey(p object.Place) []byte { return join(p.Store, p.Key) }

func decodeDeletion(key, value []byte) (Deletion, error) {
	var d Deletion
	f := read(value)
	d.seq, d.Version = f.Number("sequence", math.MaxInt64), f.Text("version", maxID)
	var ok bool
	if d.Place.Store, d.Place.Key, ok = cut(key); !ok {
		f.Fail("key without a store")
	}
	return d, f.end("deletion")
}

// queue puts a blob into the queue for deletion.
func (v *view) queue(p object.Place, version string) {
	v.put(deletes, deletionKey(p), field.AppendText(appendNumber([]byte{valueFormat}, v.seq), version))
}
