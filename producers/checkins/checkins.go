package checkins

import (
	"context"
	"fmt"

	"penstock/producers/recording"
	"penstock/schemas/event"
)

// Options of Read.
type Options struct {
	// Bad is told of each line that cannot be used. Nil: they are only counted.
	Bad func(recording.BadLine)
	// Bytes of a write and of a read. Defaults to 1,000.
	Bytes int64
	// Reads that one check-in causes. 0 makes writes only.
	Reads int
	// Seed of the draw. Each gives another, equally likely recording.
	Seed uint64
}

// The defaults of DESIGN §5.
const (
	DefaultReads = 10
	DefaultBytes = 1000
)

const (
	// A read comes from minDelay to maxDelay µs after the write.
	minDelay = 1_000_000
	maxDelay = 60_000_000
	// maxReads bounds the reads that wait for their time.
	maxReads = 1 << 16
)

// Stats says what was read and made. CheckIns × Reads = Reads + Unlocated.
type Stats struct {
	CheckIns int64 // writes
	Reads    int64
	// Unlocated reads are those of check-ins at whose time no friend had a
	// place; they were not made.
	Unlocated int64
	// Bad lines of both files.
	Bad int64
	// Users who checked in.
	Users int64
	// Edges of the friends file that can be read, of which SelfEdges, of a user
	// to themselves, mean nothing.
	Edges, SelfEdges int64
}

// Read reads check-ins and friendships and emits the requests in order of time;
// at one time in the order of the check-ins (by time, user and content), a
// check-in's write first. The same input, in any order of lines, and the same
// options give the same requests. The request that emit is given is valid
// during the call; its error ends reading and is returned as it is.
//
// Events are lines of user, time, latitude, longitude and venue, separated by
// tabs; of friends, see EachFriendship. An edge holds both ways. Of one that
// stands twice the greater level holds.
func Read(ctx context.Context, events, friends string, o Options, emit func(*event.Request) error) (Stats, error) {
	if o.Bytes == 0 {
		o.Bytes = DefaultBytes
	}
	if o.Bytes < 0 || o.Reads < 0 || o.Reads > maxReads {
		return Stats{}, fmt.Errorf("bytes %d and reads %d, expected 1 or more and 0 to %d: %w", o.Bytes, o.Reads, maxReads, ErrOption)
	}
	h, err := readHistory(ctx, events, o.Bad)
	if err != nil {
		return Stats{}, fmt.Errorf("check-ins: %w", err)
	}
	g, err := readFriends(ctx, friends, h, o.Bad)
	if err != nil {
		return Stats{}, fmt.Errorf("friends: %w", err)
	}
	stats := Stats{
		Bad: h.bad + g.bad, Users: int64(len(h.names)), Edges: g.edges, SelfEdges: g.self,
	}
	d := newDraw(h, g, o, emit)
	err = d.run(ctx)
	stats.CheckIns, stats.Reads, stats.Unlocated = d.checkIns, d.reads, d.unlocated
	return stats, err
}
