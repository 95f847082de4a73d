package directory

import (
	"slices"
	"sync"
	"sync/atomic"
)

// maxNames bounds the sites that entries name, so that a broken writer can't fill
// the memory with them.
const maxNames = 1 << 16

// names gives sites small numbers. Reading takes no lock.
type names struct {
	list  atomic.Pointer[[]string]
	mu    sync.Mutex
	index map[string]uint32
}

func newNames(sites []string) *names {
	n := &names{index: map[string]uint32{}}
	n.list.Store(&[]string{})
	for _, s := range sites {
		n.intern(s)
	}
	return n
}

func (n *names) of(i uint32) string { return (*n.list.Load())[i] }

// number returns the number of a site that has one.
func (n *names) number(site []byte) (uint32, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	i, known := n.index[string(site)]
	return i, known
}

// intern returns the number of a site; false if there are too many.
func (n *names) intern(site string) (uint32, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if i, ok := n.index[site]; ok {
		return i, true
	}
	old := *n.list.Load()
	if len(old) == maxNames {
		return 0, false
	}
	i := uint32(len(old))
	// Readers may hold the old list: it is copied, which is rare.
	list := append(slices.Clone(old), site)
	n.index[site] = i
	n.list.Store(&list)
	return i, true
}
