package checkins

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"

	"penstock/producers/recording"
	"penstock/schemas/event"
)

// history is all check-ins in order.
type history struct {
	checkIns []checkIn
	names    []string // of users, ascending; a user is an index here
	bad      int64
}

// checkIn is one line of the events file.
type checkIn struct {
	time     int64 // µs
	hash     uint64
	user     int32
	lat, lon float32
}

// readHistory reads the events file.
func readHistory(ctx context.Context, name string, bad func(recording.BadLine)) (*history, error) {
	h := &history{}
	index := make(map[string]int32)
	var key []byte
	stats, err := recording.EachLine(ctx, name, bad, func(line []byte) *recording.LineFault {
		var c checkIn
		user, fault := parseEvent(line, &c)
		if fault != nil {
			return fault
		}
		// What the file's lines say decides, not how they say it.
		key = append(append(key[:0], user...), 0)
		key = binary.BigEndian.AppendUint64(key, uint64(c.time))
		key = binary.BigEndian.AppendUint32(key, math.Float32bits(c.lat))
		key = binary.BigEndian.AppendUint32(key, math.Float32bits(c.lon))
		key = append(key, venueOf(line)...)
		c.hash = xxhash.Sum64(key)
		u, ok := index[string(user)]
		if !ok {
			u = int32(len(h.names))
			h.names = append(h.names, string(user))
			index[h.names[u]] = u
		}
		c.user = u
		h.checkIns = append(h.checkIns, c)
		return nil
	})
	if err != nil {
		return nil, err
	}
	h.bad = stats.Bad
	h.order()
	return h, nil
}

// order numbers the users by name and sorts the check-ins by time, user and
// content.
func (h *history) order() {
	ids := make([]int32, len(h.names))
	for i := range ids {
		ids[i] = int32(i)
	}
	slices.SortFunc(ids, func(a, b int32) int { return cmp.Compare(h.names[a], h.names[b]) })
	rank := make([]int32, len(ids))
	for r, id := range ids {
		rank[id] = int32(r)
	}
	for i := range h.checkIns {
		h.checkIns[i].user = rank[h.checkIns[i].user]
	}
	slices.Sort(h.names)
	slices.SortFunc(h.checkIns, func(a, b checkIn) int {
		return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.user, b.user), cmp.Compare(a.hash, b.hash))
	})
}

// parseEvent reads user, time, latitude and longitude of a line.
func parseEvent(line []byte, c *checkIn) ([]byte, *recording.LineFault) {
	var fields [5][]byte
	n := split(line, '\t', fields[:])
	if n < 4 || n > 5 {
		return nil, &recording.LineFault{
			Field: "line", Got: strconv.Itoa(n) + " columns",
			Expected: "user, time, latitude, longitude, venue, separated by tabs",
		}
	}
	if f := checkID("user", fields[0]); f != nil {
		return nil, f
	}
	var ok bool
	if c.time, ok = parseTime(fields[1]); !ok {
		return nil, wrong("time", fields[1], "a time such as 2010-10-19 23:55:27+0000")
	}
	if c.lat, ok = degrees(fields[2], 90); !ok {
		return nil, wrong("latitude", fields[2], "degrees from -90 to 90")
	}
	if c.lon, ok = degrees(fields[3], 180); !ok {
		return nil, wrong("longitude", fields[3], "degrees from -180 to 180")
	}
	return fields[0], nil
}

// venueOf returns what follows the fourth tab of an event.
func venueOf(line []byte) []byte {
	for range 4 {
		_, line, _ = bytes.Cut(line, []byte{'\t'})
	}
	return line
}

// split cuts a line at its separators into fields and returns how many it has, which
// may be more than there is room for.
func split(line []byte, separator byte, fields [][]byte) int {
	n := 0
	for more := true; more; n++ {
		var field []byte
		field, line, more = bytes.Cut(line, []byte{separator})
		if n < len(fields) {
			fields[n] = field
		}
	}
	return n
}

func wrong(field string, got []byte, expected string) *recording.LineFault {
	return &recording.LineFault{Field: field, Got: string(got), Expected: expected}
}

func checkID(field string, id []byte) *recording.LineFault {
	switch {
	case len(id) == 0 || string(id) == "-":
		return wrong(field, id, "an id")
	case len(id) > event.MaxID:
		return wrong(field, id, "at most "+strconv.Itoa(event.MaxID)+" bytes")
	case !utf8.Valid(id):
		return wrong(field, id, "UTF-8")
	}
	return nil
}

// parseTime reads "2010-10-19 23:55:27+0000", as Gowalla's head has it, or RFC
// 3339, as the whole has it, if it lies in the years that a request may have.
func parseTime(b []byte) (int64, bool) {
	s := string(b)
	t, err := time.Parse("2006-01-02 15:04:05-0700", s)
	if err != nil {
		t, err = time.Parse(time.RFC3339, s)
	}
	if err != nil {
		return 0, false
	}
	// The latest read must be valid, too.
	at := event.NewRequest(t.UnixMicro())
	after := event.NewRequest(t.UnixMicro() + maxDelay)
	return at.Time, at.Check() == nil && after.Check() == nil
}

func degrees(b []byte, most float64) (float32, bool) {
	v, err := strconv.ParseFloat(string(b), 32)
	return float32(v), err == nil && v >= -most && v <= most
}
