package control

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"penstock/schemas/subject"
)

// Switch is a value of KV operator. Which of its fields counts follows from the
// key: mode.<kind>, freeze.<kind>, freeze.all, rollback.<kind>,
// evacuate.<site> (DESIGN §3). A key that is deleted is a switch that was never
// set.
type Switch struct {
	Version int `json:"version"`
	// Mode is how far the kind may go; of mode.<kind>.
	Mode Mode `json:"mode,omitempty"`
	// On is whether the freeze or the evacuation holds; of freeze.* and
	// evacuate.*. On = false of freeze.<kind> is a thaw: it ends a rollback's
	// freeze too.
	On bool `json:"on,omitempty"`
	// After asks for the inverse of what was decided in windows that ended after
	// this time; of rollback.<kind>.
	After *time.Time `json:"after,omitempty"`
	By    string     `json:"by,omitempty"`
	At    time.Time  `json:"at"`
}

// The first tokens of keys of KV operator.
const (
	modeKey     = "mode."
	freezeKey   = "freeze."
	rollbackKey = "rollback."
	evacuateKey = "evacuate."
	purgeKey    = "purge."
)

// FreezeAllKey freezes every kind.
const FreezeAllKey = freezeKey + "all"

// ModeKey is the key of the mode of a kind.
func ModeKey(k Kind) string { return modeKey + string(k) }

// FreezeKey is the key that freezes one kind.
func FreezeKey(k Kind) string { return freezeKey + string(k) }

// RollbackKey is the key that asks for a rollback of one kind.
func RollbackKey(k Kind) string { return rollbackKey + string(k) }

// EvacuateKey is the key that empties a site.
func EvacuateKey(site string) string { return evacuateKey + subject.Encode(site) }

// PurgeKey is the key that ends the waiting of copies that moved away; whoever
// runs then deletes them.
func PurgeKey(k Kind) string { return purgeKey + string(k) }

// DecodeSwitch reads a value of KV operator and checks that it has what its key
// asks for.
func DecodeSwitch(key string, body []byte) (*Switch, error) {
	s := new(Switch)
	if err := decode(body, fmt.Sprintf("switch %.80q", key), s); err != nil {
		return nil, err
	}
	if s.Version != 1 {
		return nil, invalid("switch", key+".version", fmt.Sprint(s.Version), "1")
	}
	if first, rest, _ := strings.Cut(key, "."); first != "evacuate" && key != FreezeAllKey && !slices.Contains(Kinds, Kind(rest)) {
		return nil, invalid("switch", "key", key, "one of a kind: placement, split, servers or coding")
	}
	switch {
	case strings.HasPrefix(key, modeKey):
		if s.Mode != Observe && s.Mode != Advise && s.Mode != Act {
			return nil, invalid("switch", key+".mode", string(s.Mode), "observe, advise or act")
		}
	case strings.HasPrefix(key, rollbackKey):
		if s.After == nil {
			return nil, invalid("switch", key+".after", "", "a time")
		}
	case strings.HasPrefix(key, freezeKey), strings.HasPrefix(key, evacuateKey), strings.HasPrefix(key, purgeKey):
	default:
		return nil, invalid("switch", "key", key, "mode.*, freeze.*, rollback.*, evacuate.* or purge.*")
	}
	return s, nil
}

// Entry is a key of KV operator as it stands.
type Entry struct {
	Key      string
	Value    []byte
	Revision uint64
}

// Switches is what the operator wants of one kind.
type Switches struct {
	Mode Mode // "" unless set
	// Frozen by a freeze of the kind or of all, by a rollback since the last
	// thaw, or by a switch that cannot be read.
	Frozen   bool
	Evacuate []string // sites, ascending
	// Rollback is the last rollback that was asked for, and RollbackRevision its
	// revision; a decider carries it out once.
	Rollback         *time.Time
	RollbackRevision uint64
	// ModeRevision is the revision of mode.<kind>, 0 unless it is set and can be
	// read: a decider that has fallen back acts again once it rises.
	ModeRevision uint64
	// Unreadable names the keys whose values mean nothing, ascending. They
	// freeze the kind: what the operator wanted is not known.
	Unreadable []string
}

// SwitchesOf works out what the entries of KV operator say of a kind. Entries of
// other kinds are passed over.
func SwitchesOf(k Kind, entries []Entry) Switches {
	var out Switches
	var thawed uint64
	for _, e := range entries {
		evacuate := strings.HasPrefix(e.Key, evacuateKey)
		mine := e.Key == ModeKey(k) || e.Key == FreezeKey(k) || e.Key == FreezeAllKey || e.Key == RollbackKey(k)
		if !mine && !evacuate {
			continue
		}
		s, err := DecodeSwitch(e.Key, e.Value)
		site := ""
		if err == nil && evacuate {
			site, err = subject.Decode(strings.TrimPrefix(e.Key, evacuateKey))
		}
		if err != nil {
			out.Unreadable = append(out.Unreadable, e.Key)
			continue
		}
		switch {
		case evacuate:
			if s.On {
				out.Evacuate = append(out.Evacuate, site)
			}
		case e.Key == ModeKey(k):
			out.Mode, out.ModeRevision = s.Mode, e.Revision
		case e.Key == RollbackKey(k):
			after := s.After.UTC()
			out.Rollback, out.RollbackRevision = &after, e.Revision
		case s.On:
			out.Frozen = true
		case e.Key == FreezeKey(k):
			thawed = e.Revision
		}
	}
	slices.SortFunc(out.Unreadable, cmp.Compare[string])
	slices.SortFunc(out.Evacuate, cmp.Compare[string])
	out.Frozen = out.Frozen || len(out.Unreadable) > 0 || out.RollbackRevision > thawed
	return out
}
