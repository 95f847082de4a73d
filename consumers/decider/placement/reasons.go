package placement

import (
	"fmt"

	"penstock/schemas/control"
)

// Code is a typed reason. Its number stands in snapshots and digests: new codes
// come last. Their order in a record is that of listed.
type Code uint8

// The reasons: why a window was or wasn't decided, what was done, and what held
// something back. Owners are counted, not listed: the first one is named.
const (
	noReason            Code = iota
	IncompleteWindow         // something of the window's events is missing
	InsufficientSamples      // fewer requests than MinRequests, or none
	Observing                // mode observe
	Frozen                   // moves held back by the operator's freeze
	WithinCapacity           // total within the least capacity, or sites within theirs
	OverCapacity             // owners taken from a site whose load exceeds its capacity
	LMatch                   // owners moved to their L-match
	Evacuating               // owners moved out of a site that the operator empties
	Rollback                 // moves inverted
	NoImprovement            // owners that are where their L-match puts them, or as good
	NoRoom                   // no site has room for the owner's traffic
	NoAllowedSite            // residency and evacuation leave no site
	LocationUnknown          // owners with traffic, never seen with a site
	UnknownSite              // a site that the configuration doesn't name
	MoveUnderWay             // the owner's last move has no outcome yet
	Cooldown                 // the owner was moved too short a time ago
	Pinned                   // the owner's location is pinned
	Rejected                 // the same move was refused before
	MoveLimit                // more moves than Limits.Moves
	ByteLimit                // more bytes than Limits.Bytes
	HistoryGone              // a rollback reaches back further than the history
	BadRow                   // rows of the window that cannot be used
	Optimised                // what the plan of optimal is worth, and its bound
	Improved                 // owners moved to where the plan costs less
	BackingOff               // the owner's moves failed a short time ago
	PromisesBroken           // outcomes contradict what was promised
	codes
)

// listed is the order of reasons in a record.
var listed = [...]Code{
	IncompleteWindow, InsufficientSamples, Observing, PromisesBroken, Frozen, WithinCapacity, OverCapacity, Optimised,
	LMatch, Improved, Evacuating, Rollback, NoImprovement, NoRoom, NoAllowedSite, LocationUnknown, UnknownSite,
	MoveUnderWay, Cooldown, BackingOff, Pinned, Rejected, MoveLimit, ByteLimit, HistoryGone, BadRow,
}

var codeNames = [codes]string{
	"", "IncompleteWindow", "InsufficientSamples", "Observing", "Frozen", "WithinCapacity", "OverCapacity", "LMatch",
	"Evacuating", "Rollback", "NoImprovement", "NoRoom", "NoAllowedSite", "LocationUnknown", "UnknownSite",
	"MoveUnderWay", "Cooldown", "Pinned", "Rejected", "MoveLimit", "ByteLimit", "HistoryGone", "BadRow",
	"Optimised", "Improved", "BackingOff", "PromisesBroken",
}

func (c Code) String() string { return codeNames[c] }

// codeTexts say a code in words; reasons with figures have a text of their own.
var codeTexts = [codes]string{
	Frozen:          "held back by the operator's freeze",
	Observing:       "mode observe decides nothing",
	NoImprovement:   "owners where their L-match puts them, or where no other site weighs less",
	NoRoom:          "no other site has room for their traffic",
	NoAllowedSite:   "residency and evacuation leave them no site",
	LocationUnknown: "owners never seen with a site",
	MoveUnderWay:    "their last move has no outcome yet",
	Cooldown:        "moved within the cooldown",
	Pinned:          "their locations are pinned",
	Rejected:        "the same move was refused and nothing has changed since",
	MoveLimit:       "beyond the moves of one window",
	ByteLimit:       "beyond the bytes of one window",
	LMatch:          "moved to their L-match",
	Improved:        "moved to where the plan costs less",
	BackingOff:      "held after moves of theirs that failed",
}

// optimalTexts are those of policy optimal where they differ.
var optimalTexts = [codes]string{
	NoImprovement: "owners for whom no other site costs less, moving included",
	NoRoom:        "sites that would cost them less have no room to spare for them",
}

// tally counts owners by code and names the first owner of each in id order:
// that of the least rank, whichever worker met it.
type tally struct {
	count [codes]int64
	first [codes]int32 // rank + 1
}

func (t *tally) add(c Code, rank int32) {
	t.count[c]++
	if t.first[c] == 0 || rank+1 < t.first[c] {
		t.first[c] = rank + 1
	}
}

func (t *tally) join(o *tally) {
	for c := range o.count {
		t.count[c] += o.count[c]
		if o.first[c] != 0 && (t.first[c] == 0 || o.first[c] < t.first[c]) {
			t.first[c] = o.first[c]
		}
	}
}

// reasons collects the reasons of one window.
type reasons struct {
	tally tally
	// fixed are reasons with a scope and evidence, by code, in the order added.
	fixed   [codes][]control.Reason
	optimal bool // the policy is
}

func (r *reasons) add(c Code, scope string, count int64, evidence map[string]any, format string, args ...any) {
	r.fixed[c] = append(r.fixed[c], control.Reason{
		Code: c.String(), Scope: scope, Count: count, Evidence: evidence, Text: fmt.Sprintf(format, args...),
	})
}

// list returns all reasons in the order of their codes.
func (r *reasons) list(n *names) []control.Reason {
	out := []control.Reason{}
	for _, c := range listed {
		out = append(out, r.fixed[c]...)
		if r.tally.count[c] == 0 {
			continue
		}
		reason := control.Reason{Code: c.String(), Count: r.tally.count[c], Text: codeTexts[c]}
		if r.optimal && optimalTexts[c] != "" {
			reason.Text = optimalTexts[c]
		}
		if f := r.tally.first[c]; f != 0 {
			reason.Owner = string([]byte(n.at(n.sorted[f-1])))
		}
		out = append(out, reason)
	}
	return out
}
