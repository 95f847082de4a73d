package serverswitch

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"penstock/infra/wholefile"
	"penstock/schemas/control"
)

// Phase is how far a server has come.
type Phase string

// The phases.
const (
	Unknown  Phase = "unknown"
	Off      Phase = "off"
	Starting Phase = "starting"
	Warming  Phase = "warming"
	On       Phase = "on"
	Draining Phase = "draining"
	Stopping Phase = "stopping"
)

// memo is what the journal knows of a server.
type memo struct {
	Phase Phase `json:"phase"`
	// Since is when the phase began; with it the key of a hook's tries is made.
	Since time.Time `json:"since"`
	// Until is by when a warming server is to be ready, and a draining one drained.
	Until time.Time `json:"until,omitzero"`
	// Tries that failed since the phase before, and when the next one is due.
	Tries int       `json:"tries,omitempty"`
	Next  time.Time `json:"next,omitzero"`
	Fault string    `json:"fault,omitempty"`
	// Unsure is set of a draining server that is only taken for one that runs.
	Unsure bool `json:"unsure,omitempty"`
	// Cut says what was left when a drain ended at its deadline.
	Cut string `json:"cut,omitempty"`
}

// enter begins a phase.
func (m *memo) enter(p Phase, now time.Time) {
	*m = memo{Phase: p, Since: now}
}

// page is what the journal knows of a site: its table, and its servers.
type page struct {
	// Epoch is that of the table; 0: none has come yet.
	Epoch uint64    `json:"epoch"`
	On    []string  `json:"on"`
	Off   []string  `json:"off"`
	Began time.Time `json:"began,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// Lapsed is set when the table's ttl is over.
	Lapsed bool `json:"lapsed,omitempty"`
	// Answered is the table's outcome, once it is on the bus.
	Answered control.Status   `json:"answered,omitempty"`
	Servers  map[string]*memo `json:"servers"`
}

// book is the journal.
type book struct {
	Version int              `json:"version"`
	Sites   map[string]*page `json:"sites"`
}

const (
	journalName = "journal.json"
	// journalVersion of files that this version writes and reads.
	journalVersion = 1
)

// journal is the book on disk, in a folder that one process has.
type journal struct {
	lock *Folder

	mu   sync.Mutex // of all below: held while the file is written
	file wholefile.JSON[json.RawMessage]
	upto uint64 // the version of the book that is on disk
}

// openJournal locks the folder and reads what is there. ErrInUse, ErrJournal.
func openJournal(folder string) (*journal, *book, error) {
	lock, err := claim(folder)
	if errors.Is(err, ErrInUse) {
		return nil, nil, err
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrJournal, err)
	}
	j := &journal{lock: lock, file: wholefile.JSON[json.RawMessage]{Name: filepath.Join(folder, journalName)}}
	raw, some, err := j.file.Read()
	var b *book
	if err == nil && some {
		err = json.Unmarshal(raw, &b)
	}
	switch {
	case err == nil && some && (b == nil || b.Version != journalVersion):
		err = fmt.Errorf("%s: expected version %d", j.file.Name, journalVersion)
	case err == nil && !some:
		b = &book{}
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%w: %w", ErrJournal, err), lock.Close())
	}
	b.Version = journalVersion
	if b.Sites == nil {
		b.Sites = map[string]*page{}
	}
	return j, b, nil
}

// keep returns once a version of the book is on disk, or a later one. Those who come while
// the file is written share the next write. read returns the book's latest version.
func (j *journal) keep(version uint64, read func() (json.RawMessage, uint64, error)) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.upto >= version {
		return nil
	}
	b, upto, err := read()
	if err == nil {
		err = j.file.Keep(b)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrJournal, err)
	}
	j.upto = upto
	return nil
}

// close gives the folder free.
func (j *journal) close() error { return j.lock.Close() }
