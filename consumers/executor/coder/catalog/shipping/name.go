package shipping

import (
	"fmt"
	"strconv"
	"strings"
)

// name is what the key of a blob of the log says: which of its fields depends on kind.
type name struct {
	kind kind
	term uint32
	// first and last are the changes of a log blob; first is the number that a
	// snapshot is from.
	first, last uint64
	part        uint64
	bytes       int64 // of the blob, where it was listed
}

func ownerKey(coder string) string { return coder + "/owner" }

// logPrefix is what the keys of all blobs of the log begin with.
func logPrefix(coder string) string { return coder + "/log/" }

func (n name) key(coder string) string {
	switch n.kind {
	case kindLog:
		return fmt.Sprintf("%s%08x-%016x-%016x.log", logPrefix(coder), n.term, n.first, n.last)
	case kindPart:
		return fmt.Sprintf("%s%08x-%016x.snap-%08x", logPrefix(coder), n.term, n.first, n.part)
	case kindSnapshot:
		return fmt.Sprintf("%s%08x-%016x.snap", logPrefix(coder), n.term, n.first)
	case kindOwner:
	}
	return ownerKey(coder)
}

// parseName reads the key of a blob of the log; false for keys that key doesn't make.
func parseName(coder, key string) (n name, ok bool) {
	rest, ok := strings.CutPrefix(key, logPrefix(coder))
	if !ok {
		return name{}, false
	}
	hex := func(digits string, bits int) uint64 {
		v, err := strconv.ParseUint(digits, 16, bits)
		ok = ok && err == nil
		return v
	}
	stem, ending, _ := strings.Cut(rest, ".")
	numbers := strings.Split(stem, "-")
	switch part, isPart := strings.CutPrefix(ending, "snap-"); {
	case ending == "log" && len(numbers) == 3:
		n = name{kind: kindLog, first: hex(numbers[1], 64), last: hex(numbers[2], 64)}
	case ending == "snap" && len(numbers) == 2:
		n = name{kind: kindSnapshot, first: hex(numbers[1], 64)}
	case isPart && len(numbers) == 2:
		n = name{kind: kindPart, first: hex(numbers[1], 64), part: hex(part, 32)}
	default:
		return name{}, false
	}
	n.term = uint32(hex(numbers[0], 32)) //nolint:gosec // 32 bits
	// One key a name: what has another spelling is none of ours.
	return n, ok && n.key(coder) == key && (n.kind != kindLog || n.first <= n.last)
}
