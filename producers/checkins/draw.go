package checkins

import (
	"container/heap"
	"context"
	"math/bits"
	"math/rand/v2"
	"slices"

	"penstock/schemas/event"
)

// draw makes the requests, in order of time.
type draw struct {
	*history
	*graph
	opts Options
	emit func(*event.Request) error

	places  []place
	pending readHeap
	sums    []sum // scratch: friends with a place, their levels added up
	rng     rand.PCG
	row     event.Request

	checkIns, reads, unlocated int64
}

// place is where a user checked in last.
type place struct {
	lat, lon float32
	known    bool
}

type sum struct {
	user int32
	upto int64
}

// read is a read that waits for its time.
type read struct {
	time     int64
	checkIn  int64 // rank of the check-in that causes it
	number   int32 // of that check-in's reads
	user     int32
	owner    int32
	lat, lon float32
}

func newDraw(h *history, g *graph, o Options, emit func(*event.Request) error) *draw {
	return &draw{history: h, graph: g, opts: o, emit: emit, places: make([]place, len(h.names))}
}

// run goes through the check-ins, those of one time together: a place is the
// latest check-in at or before a time, whatever its rank at that time.
func (d *draw) run(ctx context.Context) error {
	all := d.history.checkIns
	for from := 0; from < len(all); {
		if err := ctx.Err(); err != nil {
			return err
		}
		to := from
		for ; to < len(all) && all[to].time == all[from].time; to++ {
			c := &all[to]
			d.places[c.user] = place{c.lat, c.lon, true}
		}
		if err := d.emitBefore(all[from].time + 1); err != nil {
			return err
		}
		// Real recordings hold exact repeats. Each is a check-in with reads of
		// its own.
		repeat := uint64(0)
		for i := from; i < to; i++ {
			if i > from && all[i] == all[i-1] {
				repeat++
			} else {
				repeat = 0
			}
			if err := d.write(&all[i]); err != nil {
				return err
			}
			d.cause(&all[i], int64(i), repeat)
		}
		from = to
	}
	return d.emitBefore(int64(1) << 62)
}

// write emits the write of a check-in.
func (d *draw) write(c *checkIn) error {
	name := d.names[c.user]
	d.checkIns++
	return d.send(c.time, name, name, event.Write, c.lat, c.lon)
}

func (d *draw) send(time int64, user, owner string, op event.Op, lat, lon float32) error {
	d.row = event.NewRequest(time)
	d.row.User, d.row.Owner, d.row.Op, d.row.Bytes = user, owner, op, d.opts.Bytes
	d.row.Lat, d.row.Lon = lat, lon
	return d.emit(&d.row)
}

// cause draws the reads of a check-in: for each a friend, with a probability in
// proportion to the social level, and a time, evenly from 1 to 60 s.
func (d *draw) cause(c *checkIn, rank int64, repeat uint64) {
	d.sums = d.sums[:0]
	total := int64(0)
	for _, f := range d.of[c.user] {
		if d.places[f.user].known {
			total += f.level
			d.sums = append(d.sums, sum{f.user, total})
		}
	}
	if total == 0 {
		d.unlocated += int64(d.opts.Reads)
		return
	}
	// An own generator for each check-in: its reads hang on nothing else.
	d.rng.Seed(d.opts.Seed, c.hash+repeat*0x9e3779b97f4a7c15)
	for n := range d.opts.Reads {
		x := d.below(total)
		at, _ := slices.BinarySearchFunc(d.sums, x+1, func(s sum, x int64) int {
			if s.upto < x {
				return -1
			}
			return 1
		})
		friend := d.sums[at].user
		p := d.places[friend]
		heap.Push(&d.pending, read{
			time: c.time + minDelay + d.below(maxDelay-minDelay+1), checkIn: rank, number: int32(n),
			user: friend, owner: c.user, lat: p.lat, lon: p.lon,
		})
	}
}

// below draws a number from 0 to n−1. It is spelled out, so that a recording
// made with one version of Go is the same with the next; the bias, below
// n/2⁶⁴, does not matter here.
func (d *draw) below(n int64) int64 {
	hi, _ := bits.Mul64(d.rng.Uint64(), uint64(n))
	return int64(hi)
}

// emitBefore emits the reads that wait for a time before t.
func (d *draw) emitBefore(t int64) error {
	for len(d.pending) > 0 && d.pending[0].time < t {
		r := heap.Pop(&d.pending).(read)
		d.reads++
		if err := d.send(r.time, d.names[r.user], d.names[r.owner], event.Read, r.lat, r.lon); err != nil {
			return err
		}
	}
	return nil
}

// readHeap has the earliest read on top; at one time check-ins' order decides.
type readHeap []read

func (h readHeap) Len() int { return len(h) }

func (h readHeap) Less(i, j int) bool {
	if h[i].time != h[j].time {
		return h[i].time < h[j].time
	}
	if h[i].checkIn != h[j].checkIn {
		return h[i].checkIn < h[j].checkIn
	}
	return h[i].number < h[j].number
}

func (h readHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h *readHeap) Push(x any) { *h = append(*h, x.(read)) }

func (h *readHeap) Pop() any {
	old := *h
	r := old[len(old)-1]
	*h = old[:len(old)-1]
	return r
}
