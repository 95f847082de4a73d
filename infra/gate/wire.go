package gate

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// link is what the gate needs of the bus. The tests put one in its place that
// loses, delays and repeats.
type link interface {
	// ask sends a request and returns the first answer, or an error when ctx ends.
	ask(ctx context.Context, subj string, body []byte) ([]byte, error)
	// serve answers requests, each in a goroutine of its own, until stop, which
	// waits for those. Of a group, if it isn't empty, one member gets a request.
	serve(subj, group string, handle func(body []byte) []byte) (stop func(), err error)
	// put writes a key of the bucket entries and returns its revision.
	put(ctx context.Context, key string, value []byte) (uint64, error)
	// get reads a key; nil if there is none.
	get(ctx context.Context, key string) ([]byte, error)
	// remove deletes a key.
	remove(ctx context.Context, key string) error
	// follow delivers what the bucket holds, in the order of revisions, then each
	// change, until fn returns false (nil) or ctx ends.
	follow(ctx context.Context, fn func(change) bool) error
	// location is an owner's entry in locations and its revision, 0 for none.
	location(ctx context.Context, owner string) (control.Location, uint64, error)
	// relocate writes it if the revision is still that one, else errConflict. After
	// any other error it is unknown whether it was written.
	relocate(ctx context.Context, owner string, l control.Location, revision uint64) error
}

// change is a key of the bucket entries as it was written.
type change struct {
	key      string
	value    []byte // nil: deleted
	revision uint64
}

// Operations of a request to an entry point.
const (
	opHold    = "hold"    // hold, or renew
	opRelease = "release" // over
	opWho     = "who"     // does anybody live under this name?
)

// States in an answer.
const (
	stateWaiting  = "waiting"  // writes are running
	stateHeld     = "held"     // none are, and none will be let in
	stateLost     = "lost"     // the hold is over
	stateReleased = "released" // it is now
	stateAlive    = "alive"
)

// request is what an entry point is asked.
type request struct {
	Op    string `json:"op"`
	ID    string `json:"id,omitempty"` // of the hold
	Owner string `json:"owner,omitempty"`
	// Data: the mover saw data of the owner at this site (see slot).
	Data    bool  `json:"data,omitempty"`
	LeaseMS int64 `json:"lease_ms,omitempty"`
	// Where is how it ended, absent if nothing has changed.
	Where *where `json:"where,omitempty"`
}

// where is where an owner is.
type where struct {
	Site    string `json:"site"`
	Version uint64 `json:"version"`
}

// answer is an entry point's.
type answer struct {
	State    string `json:"state"`
	Instance string `json:"instance"`
}

// question is what a mover is asked on gate.where.
type question struct {
	Owner string `json:"owner"`
	Site  string `json:"site"` // of who asks
	Data  bool   `json:"data,omitempty"`
}

// word is a mover's answer. Without OK it doesn't know.
type word struct {
	OK    bool   `json:"ok"`
	Where *where `json:"where,omitempty"` // absent: nobody ever moved the owner
}

// registration is the value of entry.<site>.<name>.
type registration struct {
	Instance string `json:"instance"`
}

// slot is the value of hold.<site>.<mover>.<n>: a hold that may be in force. It
// is empty when none is.
type slot struct {
	ID    string `json:"id,omitempty"`
	Owner string `json:"owner,omitempty"`
	// Data says that the site's store has a copy with data that may be written to:
	// if locations says nothing of the owner, it is here.
	Data bool `json:"data,omitempty"`
}

const (
	entryKind = "entry"
	holdKind  = "hold"
	moverKind = "mover"
)

func entryKey(site, name string) string {
	return entryKind + "." + subject.Encode(site) + "." + subject.Encode(name)
}

func holdKey(site, mover string, n int) string {
	return fmt.Sprintf("%s.%s.%s.%d", holdKind, subject.Encode(site), subject.Encode(mover), n)
}

func moverKey(mover string) string { return moverKind + "." + subject.Encode(mover) }

// parseKey returns the kind of a key and its names: site and entry, or site and
// mover, or mover.
func parseKey(key string) (kind string, names []string, ok bool) {
	parts := strings.Split(key, ".")
	want := map[string]int{entryKind: 3, holdKind: 4, moverKind: 2}[parts[0]]
	if len(parts) != want {
		return "", nil, false
	}
	for _, p := range parts[1:min(want, 3)] {
		name, err := subject.Decode(p)
		if err != nil {
			return "", nil, false
		}
		names = append(names, name)
	}
	return parts[0], names, true
}

// encode is for our own types, which always can be.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("gate: encode %T: %v", v, err)) // Strings and numbers only: it cannot fail.
	}
	return b
}

func decode[T any](body []byte) (T, error) {
	var v T
	if err := json.Unmarshal(body, &v); err != nil {
		return v, fmt.Errorf("gate: %w", err)
	}
	return v, nil
}
