package catalog

import (
	"bytes"
	"fmt"
	"sync"

	"penstock/consumers/executor/coder/object"
)

// holds are the readers of blobs. A reader first enters with the sequence number of a
// state, then reads a record in that state or a later one, and then holds its versions.
// A blob that was queued by change s may go if nobody holds its version and nobody who
// is entering came before s: those who come later can't find the version any more.
type holds struct {
	mu       sync.Mutex
	entering map[*ticket]struct{}
	refs     map[string]int
	// kept are the documents of versions that were dropped while held, or that
	// somebody may be about to hold. committed is the last change that readers see.
	kept      map[string]keptVersion
	committed uint64
}

type ticket struct{ seq uint64 }

// keptVersion was dropped by change seq.
type keptVersion struct {
	doc, rest []byte
	seq       uint64
}

func newHolds() holds {
	return holds{entering: make(map[*ticket]struct{}), refs: make(map[string]int), kept: make(map[string]keptVersion)}
}

func (h *holds) enter(seq uint64) *ticket {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := &ticket{seq}
	h.entering[t] = struct{}{}
	return t
}

// hold turns a ticket into a hold of versions, of none if the reader found none.
func (h *holds) hold(t *ticket, ids ...string) (release func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.entering, t)
	for _, id := range ids {
		h.refs[id]++
	}
	h.forget()
	return sync.OnceFunc(func() { h.release(ids) })
}

func (h *holds) release(ids []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, id := range ids {
		if h.refs[id]--; h.refs[id] == 0 {
			delete(h.refs, id)
		}
	}
	h.forget()
}

// forget drops the documents that nobody holds, and that nobody can come to hold who has
// entered or will.
func (h *holds) forget() {
	oldest := h.committed
	for t := range h.entering {
		oldest = min(oldest, t.seq)
	}
	for id, k := range h.kept {
		if h.refs[id] == 0 && k.seq <= oldest {
			delete(h.kept, id)
		}
	}
}

// stash keeps the document of a version that change seq is dropping: until that has
// committed readers come who find it.
func (h *holds) stash(id string, doc, rest []byte, seq uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.kept[id] = keptVersion{bytes.Clone(doc), bytes.Clone(rest), seq}
}

// commit says what readers who enter from now on see. Changes after that, if there were,
// have failed.
func (h *holds) commit(seq uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.committed = seq
	for id, k := range h.kept {
		if k.seq > seq {
			delete(h.kept, id)
		}
	}
	h.forget()
}

func (h *holds) stashed(id string) (doc, rest []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	k := h.kept[id]
	return k.doc, k.rest
}

// free gives the first most deletions that no reader is in the way of, and how many it
// looked at.
func (h *holds) free(seen []Deletion, most int) (list []Deletion, passed int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, d := range seen {
		if len(list) == most {
			break
		}
		passed++
		free := h.refs[d.Version] == 0
		for t := range h.entering {
			free = free && t.seq >= d.seq
		}
		if free {
			list = append(list, d)
		}
	}
	return list, passed
}

// Held is a record whose versions' blobs aren't deleted, and whose documents can be read,
// before Release.
type Held struct {
	Record  Record
	release func()
}

// Release lets the blobs go. A second one does nothing.
func (h *Held) Release() { h.release() }

// Hold is Get for readers of the blobs. It returns ErrNoBucket, ErrNoKey.
func (c *Catalog) Hold(bucket, key string) (*Held, error) {
	t := c.holds.enter(c.Seq())
	r, err := c.Get(bucket, key)
	ids := make([]string, len(r.Parts))
	for i, p := range r.Parts {
		ids[i] = p.Version
	}
	release := c.holds.hold(t, ids...)
	if err != nil {
		return nil, err
	}
	return &Held{r, release}, nil
}

// HoldVersion keeps the blobs of one version out of Deletes until release, also when it
// is overwritten meanwhile: for settling and repairing. It returns ErrNoVersion.
func (c *Catalog) HoldVersion(id string) (version *object.Version, rest Rest, release func(), err error) {
	release = c.holds.hold(c.holds.enter(c.Seq()), id)
	if version, rest, err = c.Version(id); err != nil {
		release()
		return nil, Rest{}, nil, fmt.Errorf("hold: %w", err)
	}
	return version, rest, release, nil
}
