// Package subject names what is on the bus: streams, subjects, keys, and the
// encoding of ids as subject tokens and keys (DESIGN §3).
//
// The names here carry no prefix; infra/bus adds the one of --prefix. An id
// that isn't [A-Za-z0-9_=-]+, or begins with "b64=", travels as "b64=" and its
// base64url without padding, so that e-mails, paths and IPv6 addresses are
// whole tokens and each id has one spelling.
package subject

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrToken is returned by Decode and the parsers for a token or subject that
// this package did not make.
var ErrToken = errors.New("not a token of ours")

// Streams, key-value buckets and the object bucket.
const (
	EventsStream   = "EVENTS"
	WindowsStream  = "WINDOWS"
	CommandsStream = "COMMANDS"
	OutcomesStream = "OUTCOMES"
	RejectsStream  = "REJECTS"

	LocationsKV     = "locations"
	OperatorKV      = "operator"
	MembersKV       = "members"
	EntriesKV       = "entries" // entry points that take part in moves, and moves that hold writes there
	SnapshotsBucket = "snapshots"
)

// Streams lists the five streams.
var Streams = []string{EventsStream, WindowsStream, CommandsStream, OutcomesStream, RejectsStream}

const escaped = "b64="

// Encode returns an id as one subject token or key.
func Encode(id string) string {
	if plain(id) {
		return id
	}
	return escaped + base64.RawURLEncoding.EncodeToString([]byte(id))
}

// Decode returns the id of a token. A token that Encode does not make has none.
func Decode(token string) (string, error) {
	rest, ok := strings.CutPrefix(token, escaped)
	if !ok {
		if !plain(token) {
			return "", fmt.Errorf("token %.60q: %w", token, ErrToken)
		}
		return token, nil
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(rest)
	// The decoder passes over line ends, which no token of ours has.
	if err != nil || plain(string(b)) || strings.ContainsAny(rest, "\r\n") {
		return "", fmt.Errorf("token %.60q: %w", token, ErrToken)
	}
	return string(b), nil
}

func plain(id string) bool {
	if id == "" || strings.HasPrefix(id, escaped) {
		return false
	}
	for i := range len(id) {
		c := id[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '=', c == '-':
		default:
			return false
		}
	}
	return true
}

// Events is where an entry point publishes batches of a partition.
func Events(partition int, entry string) string {
	return "events." + strconv.Itoa(partition) + "." + Encode(entry)
}

// Marks is where an entry point publishes marks.
func Marks(entry string) string { return "events.all." + Encode(entry) }

// EventsOf are the subjects that an aggregator of a partition reads.
func EventsOf(partition int) []string {
	return []string{"events." + strconv.Itoa(partition) + ".*", "events.all.*"}
}

// Entry returns the entry point of a subject of EVENTS and its partition, −1
// for marks.
func Entry(subject string) (entry string, partition int, err error) {
	parts := strings.Split(subject, ".")
	if len(parts) != 3 || parts[0] != "events" {
		return "", 0, fmt.Errorf("subject %.60q: %w", subject, ErrToken)
	}
	partition = -1
	if parts[1] != "all" {
		if partition, err = number(parts[1]); err != nil {
			return "", 0, fmt.Errorf("subject %.60q: %w", subject, err)
		}
	}
	if entry, err = Decode(parts[2]); err != nil {
		return "", 0, fmt.Errorf("subject %.60q: %w", subject, err)
	}
	return entry, partition, nil
}

// number reads a partition, which has one spelling.
func number(token string) (int, error) {
	n, err := strconv.Atoi(token)
	if err != nil || n < 0 || strconv.Itoa(n) != token {
		return 0, fmt.Errorf("token %.60q: not a partition: %w", token, ErrToken)
	}
	return n, nil
}

// Windows is where the aggregator of a group and partition publishes flushes.
func Windows(group string, partition int) string {
	return "windows." + group + "." + strconv.Itoa(partition)
}

// WindowsOf is what a reader of a group on all partitions subscribes to.
func WindowsOf(group string) string { return "windows." + group + ".*" }

// PartitionOfWindows returns the group and partition of a subject of WINDOWS.
func PartitionOfWindows(subject string) (group string, partition int, err error) {
	parts := strings.Split(subject, ".")
	if len(parts) != 3 || parts[0] != "windows" || !plain(parts[1]) {
		return "", 0, fmt.Errorf("subject %.60q: %w", subject, ErrToken)
	}
	if partition, err = number(parts[2]); err != nil {
		return "", 0, fmt.Errorf("subject %.60q: %w", subject, err)
	}
	return parts[1], partition, nil
}

// Decisions is where the decider of a kind publishes its records.
func Decisions(kind string) string { return "decisions." + kind }

// Commands is where the decider of a kind publishes the commands of a scope.
func Commands(kind, scope string) string { return "commands." + kind + "." + Encode(scope) }

// CommandsOf is what an executor of a kind subscribes to.
func CommandsOf(kind string) string { return "commands." + kind + ".*" }

// Outcomes is where an executor answers.
func Outcomes(kind, scope string) string { return "outcomes." + kind + "." + Encode(scope) }

// OutcomesOf is what the decider of a kind subscribes to.
func OutcomesOf(kind string) string { return "outcomes." + kind + ".*" }

// Rejects is where a message that cannot be used is parked.
func Rejects(reason, entry string) string { return "rejects." + Encode(reason) + "." + Encode(entry) }

// Gate is where an entry point of a site is asked to hold writes.
func Gate(site, entry string) string { return "gate." + Encode(site) + "." + Encode(entry) }

// GateWhere is where movers tell for sure where an owner is.
const GateWhere = "gate.where"
