package mover

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"penstock/schemas/control"
)

// Record types of the journal.
const (
	planned  = "plan"     // the move was taken on
	copied   = "copied"   // the destination is equal and verified
	switched = "flipped"  // locations names the destination
	retired  = "retired"  // the source's copy is to be deleted
	answered = "answered" // the outcome is on the bus
	deleted  = "deleted"  // a retired copy is gone
	kept     = "kept"     // a retired copy is not to be deleted after all
)

// record is one line of the journal.
type record struct {
	Type    string         `json:"t"`
	Owner   string         `json:"owner"`
	Version uint64         `json:"v,omitempty"`
	From    string         `json:"from,omitempty"`
	To      string         `json:"to,omitempty"`
	Bytes   int64          `json:"bytes,omitempty"`
	Scope   string         `json:"scope,omitempty"`
	Window  *time.Time     `json:"window,omitempty"` // its end
	Status  control.Status `json:"status,omitempty"`
	Site    string         `json:"site,omitempty"` // of a retired copy
	At      *time.Time     `json:"at,omitempty"`   // answered: when; retired: when to delete, none = not before a purge
}

// ownerVersion names a move.
type ownerVersion struct {
	owner   string
	version uint64
}

// task is a move with what its command says of it.
type task struct {
	control.Move
	scope  string
	window time.Time // end of the window that decided it
}

func (t *task) key() ownerVersion { return ownerVersion{t.Owner, t.Version} }

// retirement is a copy that is to be deleted.
type retirement struct {
	owner, site string
	version     uint64    // of the move that took the data away
	to          string    // where it went
	at          time.Time // zero: not before a purge
}

type copyAt struct{ owner, site string }

// journal is what a mover owes, in memory and on disk. Its methods are safe for
// concurrent use.
type journal struct {
	file *journalFile

	mu      sync.Mutex
	open    map[ownerVersion]task
	done    map[ownerVersion]time.Time // answered, and when
	retired map[copyAt]retirement
}

// openJournal reads the journal in dir. now and keep bound how far back answers
// are remembered.
func openJournal(dir string, sync bool, now time.Time, keep time.Duration) (*journal, error) {
	j := &journal{open: map[ownerVersion]task{}, done: map[ownerVersion]time.Time{}, retired: map[copyAt]retirement{}}
	f, err := openJournalFile(dir, sync, j.apply)
	if err != nil {
		return nil, err
	}
	j.file = f
	j.forget(now.Add(-keep))
	return j, nil
}

// apply lets one record take effect in memory.
func (j *journal) apply(r *record) {
	key := ownerVersion{r.Owner, r.Version}
	switch r.Type {
	case planned:
		t := task{Move: control.Move{Owner: r.Owner, From: r.From, To: r.To, Version: r.Version, Bytes: r.Bytes}, scope: r.Scope}
		if r.Window != nil {
			t.window = *r.Window
		}
		j.open[key] = t
	case answered:
		delete(j.open, key)
		if r.At != nil {
			j.done[key] = *r.At
		}
	case retired:
		e := retirement{owner: r.Owner, site: r.Site, version: r.Version, to: r.To}
		if r.At != nil {
			e.at = *r.At
		}
		j.retired[copyAt{r.Owner, r.Site}] = e
	case deleted, kept:
		delete(j.retired, copyAt{r.Owner, r.Site})
	}
}

// write appends a record and lets it take effect. A durable one is synced, if
// the journal is, before write returns.
func (j *journal) write(r *record, durable bool) error {
	j.mu.Lock()
	n, err := j.file.append(r)
	if err == nil {
		j.apply(r)
		if j.file.wantsCompaction(len(j.open) + len(j.done) + len(j.retired)) {
			err = j.file.rewrite(j.records())
		}
	}
	j.mu.Unlock()
	if err == nil && durable {
		err = j.file.commit(n)
	}
	return err
}

// records is the journal's content as few records as say it.
func (j *journal) records() []*record {
	var out []*record
	for _, t := range j.open {
		out = append(out, t.record())
	}
	for k, at := range j.done {
		out = append(out, &record{Type: answered, Owner: k.owner, Version: k.version, At: &at})
	}
	for _, e := range j.retired {
		out = append(out, e.record(retired))
	}
	return out
}

func (t *task) record() *record {
	window := t.window
	return &record{Type: planned, Owner: t.Owner, Version: t.Version, From: t.From, To: t.To, Bytes: t.Bytes, Scope: t.scope, Window: &window}
}

func (e *retirement) record(kind string) *record {
	r := &record{Type: kind, Owner: e.owner, Version: e.version, Site: e.site}
	if kind == retired {
		r.To = e.to
		if at := e.at; !at.IsZero() {
			r.At = &at
		}
	}
	return r
}

// plan journals a move, unless it is open already.
func (j *journal) plan(t *task) error {
	j.mu.Lock()
	_, there := j.open[t.key()]
	j.mu.Unlock()
	if there {
		return nil
	}
	return j.write(t.record(), false)
}

// step journals how far a move has come. What it says is found again in the
// stores and in locations: it tells people, and costs no sync.
func (j *journal) step(t *task, kind string) error {
	return j.write(&record{Type: kind, Owner: t.Owner, Version: t.Version}, false)
}

// answer closes a move.
func (j *journal) answer(t *task, status control.Status, at time.Time) error {
	return j.write(&record{Type: answered, Owner: t.Owner, Version: t.Version, Status: status, At: &at}, true)
}

// isAnswered reports whether this mover answered the move, as far as it
// remembers.
func (j *journal) isAnswered(k ownerVersion) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	_, ok := j.done[k]
	return ok
}

// isOpen reports whether the move was taken on and not answered.
func (j *journal) isOpen(k ownerVersion) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	_, ok := j.open[k]
	return ok
}

// openTasks are the moves that were taken on and not answered, by owner and
// version.
func (j *journal) openTasks() []task {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := make([]task, 0, len(j.open))
	for _, t := range j.open {
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b task) int {
		return cmp.Or(cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Version, b.Version))
	})
	return out
}

// retirement returns the pending deletion of a copy.
func (j *journal) retirement(owner, site string) (retirement, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e, ok := j.retired[copyAt{owner, site}]
	return e, ok
}

// due returns the copies to delete by now, or all of them, by owner and site,
// and when the next one is due; zero if none is.
func (j *journal) due(now time.Time, all bool) (out []retirement, next time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.retired {
		switch {
		case all, !e.at.IsZero() && !e.at.After(now):
			out = append(out, e)
		case !e.at.IsZero() && (next.IsZero() || e.at.Before(next)):
			next = e.at
		}
	}
	slices.SortFunc(out, func(a, b retirement) int {
		return cmp.Or(cmp.Compare(a.owner, b.owner), cmp.Compare(a.site, b.site))
	})
	return out, next
}

// forget drops answers from before a time; the next compaction drops them from
// the disk.
func (j *journal) forget(before time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for k, at := range j.done {
		if at.Before(before) {
			delete(j.done, k)
		}
	}
}

func (j *journal) close() error { return j.file.close() }

// Retirements reads which copies the mover with its journal in dir is going to
// delete, for locations verify. It takes no lock and changes nothing: the mover
// may be running, and what it writes meanwhile may be missed. A folder without a
// journal has none. ErrCorrupt.
func Retirements(dir string) (retired func(owner, site string) bool, err error) {
	j := &journal{open: map[ownerVersion]task{}, done: map[ownerVersion]time.Time{}, retired: map[copyAt]retirement{}}
	f, err := os.Open(filepath.Join(dir, journalName))
	switch {
	case err == nil:
		_, _, err = readRecords(f, j.apply)
		err = errors.Join(err, f.Close())
	case errors.Is(err, os.ErrNotExist):
		err = nil
	}
	if err != nil {
		return nil, fmt.Errorf("mover journal %s: %w", dir, err)
	}
	return func(owner, site string) bool {
		_, ok := j.retirement(owner, site)
		return ok
	}, nil
}
