package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// fate is what became of a write.
type fate uint8

const (
	unknown fate = iota // sent, and not answered (yet)
	acknowledged
	refused
)

// Ledger is the books. It is safe for concurrent use.
type Ledger struct {
	mu     sync.Mutex
	owners map[string]*book
	kept   int // acknowledged writes of all owners
}

type book struct {
	writes map[string]fate // by the write's id
	kept   int             // of them acknowledged
}

// New returns empty books.
func New() *Ledger { return &Ledger{owners: map[string]*book{}} }

// book of an owner; the lock is held.
func (l *Ledger) book(owner string) *book {
	b := l.owners[owner]
	if b == nil {
		b = &book{writes: map[string]fate{}}
		l.owners[owner] = b
	}
	return b
}

// Owner enters an owner, who may never be written to.
func (l *Ledger) Owner(owner string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.book(owner)
}

// Sent enters a write that is about to be sent. Ids of an owner's writes are
// unique.
func (l *Ledger) Sent(owner, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.book(owner).writes[id] = unknown
}

// Acknowledged notes that a write was acknowledged.
func (l *Ledger) Acknowledged(owner, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.book(owner)
	if b.writes[id] != acknowledged {
		b.writes[id] = acknowledged
		b.kept++
		l.kept++
	}
}

// Refused notes that the service said that it did not write.
func (l *Ledger) Refused(owner, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.book(owner).writes[id] = refused
}

// Kept is how many writes of an owner have been acknowledged: a read that is sent
// now must see at least as many.
func (l *Ledger) Kept(owner string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b := l.owners[owner]; b != nil {
		return b.kept
	}
	return 0
}

// Total is how many writes have been acknowledged.
func (l *Ledger) Total() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.kept
}

// Copy is what one site holds of an owner.
type Copy struct {
	Site  string
	Live  bool     // it may be written to
	Notes []string // ids of the writes there, in their order
}

// Fault is a promise that was not kept.
type Fault struct {
	Owner string
	Site  string // where it was found, if anywhere
	Write string // its id, if it is about one
	What  What
}

// What is the kind of a fault.
type What string

// The kinds of faults, the worst first.
const (
	Lost     What = "an acknowledged write is lost"
	Doubled  What = "a write is there twice"
	Returned What = "a write that was refused is there"
	Foreign  What = "a write that nobody sent is there"
	NoCopy   What = "there is no live copy"
	TwoLive  What = "there is another live copy"
)

var order = []What{Lost, Doubled, Returned, Foreign, NoCopy, TwoLive}

// String says all of it.
func (f Fault) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s of %s", f.What, f.Owner)
	if f.Write != "" {
		fmt.Fprintf(&b, ": %s", f.Write)
	}
	if f.Site != "" {
		fmt.Fprintf(&b, " at %s", f.Site)
	}
	return b.String()
}

// Verdict is what came of the comparison.
type Verdict struct {
	Owners       int
	Sent         int
	Acknowledged int
	Refused      int
	Unknown      int // never answered
	Found        int // writes in live copies
	Faults       []Fault
}

// Check compares the books with what the sites hold of each owner. Owners that
// only one side knows are looked at too. Nothing may be writing any more.
func (l *Ledger) Check(found map[string][]Copy) Verdict {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := Verdict{Owners: len(l.owners)}
	for owner, b := range l.owners {
		v.Sent += len(b.writes)
		for _, f := range b.writes {
			switch f {
			case acknowledged:
				v.Acknowledged++
			case refused:
				v.Refused++
			default:
				v.Unknown++
			}
		}
		v.owner(owner, b, found[owner])
	}
	for owner, copies := range found {
		if l.owners[owner] == nil {
			v.owner(owner, &book{}, copies)
		}
	}
	slices.SortFunc(v.Faults, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.What), slices.Index(order, b.What)),
			cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Write, b.Write), cmp.Compare(a.Site, b.Site))
	})
	return v
}

func (v *Verdict) fault(what What, owner, site, write string) {
	v.Faults = append(v.Faults, Fault{Owner: owner, Site: site, Write: write, What: what})
}

// owner compares one owner's book with the copies. Where two are live, the first
// by site is looked at, and that there is another is a fault.
func (v *Verdict) owner(owner string, b *book, copies []Copy) {
	live := slices.DeleteFunc(slices.Clone(copies), func(c Copy) bool { return !c.Live })
	slices.SortFunc(live, func(a, b Copy) int { return cmp.Compare(a.Site, b.Site) })
	if len(live) == 0 {
		v.fault(NoCopy, owner, "", "")
		live = []Copy{{}}
	}
	for _, other := range live[1:] {
		v.fault(TwoLive, owner, other.Site, "")
	}
	c := live[0]
	v.Found += len(c.Notes)
	times := map[string]int{}
	for _, id := range c.Notes {
		times[id]++
		f, sent := b.writes[id]
		switch {
		case times[id] == 2:
			v.fault(Doubled, owner, c.Site, id)
		case times[id] > 2: // told already
		case !sent:
			v.fault(Foreign, owner, c.Site, id)
		case f == refused:
			v.fault(Returned, owner, c.Site, id)
		}
	}
	for id, f := range b.writes {
		if f == acknowledged && times[id] == 0 {
			v.fault(Lost, owner, "", id)
		}
	}
}
