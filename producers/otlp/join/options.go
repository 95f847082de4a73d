package join

import "cmp"

// Options of a Joiner.
type Options struct {
	// Entries says which roots are calls from outside.
	Entries Entries
	// MaxSpans bounds the spans of open traces. Defaults to 1,048,576: about
	// 300 MB.
	MaxSpans int
	// Live says that now is in µs since 1970. A call is then made once its halves
	// ended a Window ago, as their clocks tell, though its trace may be open for
	// longer. What says that it ended in the future, or more than a Window ago, ends
	// when it comes.
	Live bool
	// Memory is how many calls are remembered once they are made, so that a half
	// that comes later isn't a second one. Defaults to 262,144.
	Memory int
	// Trace64 says that hosts may know only the lower 64 bits of a trace's id, as
	// in Zipkin: these alone tell traces apart.
	Trace64 bool
	// Step is how often a Live joiner looks at its traces, µs; calls are made up to
	// two steps after their time.
	Step int64
	// Window is how long a trace is open after its last span, in the unit of now:
	// µs for a receiver, spans for a file. 0 is for ever.
	Window int64
	// MaxAge is how long a trace is open at all. 0 is for ever.
	MaxAge int64
}

// Entries says which roots are calls from outside.
type Entries uint8

// The choices.
const (
	EntryServers Entries = iota // roots of kind server
	EntryAll                    // those of unknown kind too
	EntryNone
)

func (o *Options) complete() {
	o.MaxSpans = max(cmp.Or(o.MaxSpans, 1<<20), 1)
	o.Memory = max(cmp.Or(o.Memory, 1<<18), 1)
}
