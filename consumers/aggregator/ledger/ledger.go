package ledger

import (
	"slices"
	"strings"

	"penstock/schemas/event"
	"penstock/schemas/window"
)

const (
	second = 1_000_000
	// forget is the stream time (µs) after its last message at which a run is
	// forgotten.
	forget = 24 * 3600 * second
	// maxRuns bounds the live runs, so that a commit fits in a message whatever
	// crashes in a loop: beyond it the one that was silent longest is forgotten.
	maxRuns = 1024
	// maxIntervals bounds the incomplete intervals of a commit: beyond it those
	// of each run and reason become one.
	maxIntervals = 512
	// maxRetired bounds the names of forgotten runs that are kept.
	maxRetired = 256
	// keepLost bounds the forgotten runs whose lost sequences are kept.
	keepLost = 8
)

// Config says whose books are kept.
type Config struct {
	Group     string
	Partition int
	// Idle is the idle timeout in µs of stream time; 0 is never.
	Idle int64
	// Widths are those of the group's windows in µs; the first one is the
	// window of the account.
	Widths []int64
	// Disorder is how far (µs) the times of rows may lie beyond their run's
	// watermark at least; a run that was seen to go further widens it.
	// Incomplete intervals end that much after the next thing the run said.
	Disorder int64
}

// ConfigOf returns the configuration for a group and partition, with the
// group's widths and a disorder of one second.
func ConfigOf(group string, partition int, idle int64, widths window.Widths) Config {
	c := Config{Group: group, Partition: partition, Idle: idle, Disorder: second}
	for _, w := range widths.Group(group) {
		c.Widths = append(c.Widths, w.Microseconds())
	}
	return c
}

// Position is where a message stands in EVENTS.
type Position struct {
	Seq  uint64 // of the stream
	Time int64  // the server's, µs
}

// Ledger keeps the books of one group on one partition. It is not safe for
// concurrent use.
type Ledger struct {
	cfg     Config
	runs    []*run // by name
	retired []window.Retired
	covered uint64

	watermark, reach   int64
	stream, serverTime int64
	hole               bool

	total    window.Account
	parked   int64
	excluded int64
	since    since
	class    []Class
}

// since is what happened since the last commit.
type since struct {
	account    window.Account
	windows    []window.WindowCount
	at         map[int64]int32 // start → place in windows
	incomplete []window.Interval
	ended      []window.Run
	watermark  int64 // of the last commit
	covered    uint64
	barrier    bool
	end        bool
}

// New returns empty books.
func New(cfg Config) *Ledger {
	l := &Ledger{cfg: cfg, watermark: window.NullInt, reach: window.NullInt}
	l.since.watermark = window.NullInt
	l.since.at = map[int64]int32{}
	return l
}

// Restore returns the books as they stood at a commit.
func Restore(cfg Config, c *window.Commit) *Ledger {
	l := New(cfg)
	l.covered, l.watermark, l.reach = c.Covered, c.Watermark, c.Reach
	l.stream, l.serverTime, l.hole = c.StreamTime, c.ServerTime, c.Hole
	l.total, l.parked = c.Total, c.Parked
	l.retired = cloneRetired(c.Retired)
	for _, w := range c.Runs {
		if !w.Ended {
			l.runs = append(l.runs, restoreRun(w))
		}
	}
	slices.SortFunc(l.runs, func(a, b *run) int { return strings.Compare(a.name, b.name) })
	l.since.watermark, l.since.covered = l.watermark, l.covered
	return l
}

// Commit returns what a flush that covers all messages so far has to say, and
// begins the next one. Flush, Owner, Panes are the caller's.
func (l *Ledger) Commit() *window.Commit {
	c := &window.Commit{
		Group: l.cfg.Group, Partition: l.cfg.Partition, Covered: l.covered,
		Watermark: l.watermark, Reach: l.reach, StreamTime: l.stream, ServerTime: l.serverTime,
		Account: l.since.account, Total: l.total, Windows: l.since.windows,
		Incomplete: bounded(l.since.incomplete), Retired: cloneRetired(l.retired),
		Parked: l.parked, Excluded: l.excluded, Hole: l.hole,
	}
	slices.SortFunc(c.Windows, func(a, b window.WindowCount) int { return compareInt(a.Start, b.Start) })
	for _, r := range l.runs {
		c.Runs = append(c.Runs, r.commit(false))
	}
	c.Runs = append(c.Runs, l.since.ended...)
	slices.SortStableFunc(c.Runs, func(a, b window.Run) int { return strings.Compare(a.Run, b.Run) })
	l.excluded = 0
	clear(l.since.at)
	l.since = since{watermark: l.watermark, covered: l.covered, at: l.since.at}
	return c
}

// Covered returns the stream's sequence of the last message taken.
func (l *Ledger) Covered() uint64 { return l.covered }

// Watermark returns the partition's watermark (µs), NullInt if there is none.
func (l *Ledger) Watermark() int64 { return l.watermark }

// Total returns the account since the beginning.
func (l *Ledger) Total() window.Account { return l.total }

// Windows returns how many windows have counts since the last commit.
func (l *Ledger) Windows() int { return len(l.since.windows) }

// Dirty reports whether a message was taken since the last commit.
func (l *Ledger) Dirty() bool { return l.covered != l.since.covered }

// Passed reports whether the watermark has passed the end of a window of the
// group since the last commit.
func (l *Ledger) Passed() bool {
	if l.watermark == l.since.watermark {
		return false
	}
	if l.since.watermark == window.NullInt {
		return true
	}
	for _, w := range l.cfg.Widths {
		if floor(l.watermark, w) > floor(l.since.watermark, w) {
			return true
		}
	}
	return false
}

// Due reports whether a flush is due at once: a barrier took effect and the
// watermark has passed the end of a window since the last commit, or a run
// ended.
func (l *Ledger) Due() bool {
	return l.since.end || l.since.barrier && l.Passed()
}

// Exclude counts delay samples that were left out, being negative or absurd
// (P18).
func (l *Ledger) Exclude(n int64) { l.excluded += n }

// Park reports whether a message of that run that goes to REJECTS is to be
// sampled, at most limit for each run, and counts it.
func (l *Ledger) Park(name string, limit int64) bool {
	n := &l.parked
	if r := l.find(name); r != nil {
		n = &r.parked
	}
	if *n >= limit {
		return false
	}
	*n++
	return true
}

func (l *Ledger) find(name string) *run {
	if i, ok := l.index(name); ok {
		return l.runs[i]
	}
	return nil
}

func (l *Ledger) index(name string) (int, bool) {
	return slices.BinarySearchFunc(l.runs, name, func(r *run, name string) int { return strings.Compare(r.name, name) })
}

func (l *Ledger) findRetired(name string) *window.Retired {
	for i := range l.retired {
		if l.retired[i].Run == name {
			return &l.retired[i]
		}
	}
	return nil
}

// open returns the run of that name, new if it must be.
func (l *Ledger) open(name string) *run {
	i, ok := l.index(name)
	if ok {
		l.runs[i].seen = l.stream
		return l.runs[i]
	}
	r := newRun(name)
	r.seen = l.stream
	l.runs = slices.Insert(l.runs, i, r)
	if len(l.runs) > maxRuns {
		// The new one was seen last and stays, also among equals.
		l.retire(slices.MinFunc(l.runs, func(a, b *run) int {
			if a == r || b == r {
				return compareBool(a == r, b == r)
			}
			return compareInt(a.seen, b.seen)
		}))
	}
	return r
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// retire forgets a run: its name and highest sequence are kept, its account is
// told once more, in the next commit.
func (l *Ledger) retire(r *run) {
	i, _ := l.index(r.name)
	l.runs = slices.Delete(l.runs, i, i+1)
	l.since.ended = append(l.since.ended, r.commit(true))
	if n := len(l.retired) - maxRetired + 1; n > 0 {
		l.retired = slices.Delete(l.retired, 0, n)
	}
	l.retired = append(l.retired, window.Retired{Run: r.name, Last: r.highest(), At: l.stream, Lost: slices.Clone(r.lost)})
	if n := len(l.retired) - keepLost; n > 0 {
		l.retired[n-1].Lost = nil
	}
}

func cloneRetired(in []window.Retired) []window.Retired {
	out := slices.Clone(in)
	for i := range out {
		out[i].Lost = slices.Clone(out[i].Lost)
	}
	return out
}

func floor(t, width int64) int64 {
	s := t - t%width
	if t%width < 0 {
		s -= width
	}
	return s
}

func compareInt(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// pending returns a mark as it waits for its sequences on this partition.
func (l *Ledger) pending(m *event.Mark) window.PendingMark {
	return window.PendingMark{Kind: string(m.Kind), Upto: m.Upto[l.cfg.Partition], Watermark: m.Watermark}
}
