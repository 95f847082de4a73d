package follow

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"penstock/infra/bus"
	"penstock/infra/clock"
	"penstock/schemas/event"
)

// LineParser makes requests of lines; *accesslog.Lines is one. Parse fills the row
// from a line, which has no line end and is not kept. Its errors make the line
// malformed, except ErrPart and ErrNoRow. Calls come from one goroutine.
type LineParser interface {
	Parse(line []byte, r *event.Request) error
}

// Holder is what a LineParser that puts parts of lines together offers too; it
// belongs to one file.
type Holder interface {
	// Held reports whether, after the last line, parts of any row are held.
	Held() bool
	// Rest returns the parts whose other lines never came, at the end of a file.
	// They are malformed.
	Rest() [][]byte
}

// Several is what a LineParser with more than one row in a line offers too: Next
// fills r from the next one. Its errors are those of Parse, or io.EOF if there is
// none.
type Several interface {
	Next(r *event.Request) error
}

// Publisher takes the rows; *publisher.Publisher with positions is one.
type Publisher interface {
	Commit(ctx context.Context, position []byte) error
	Horizon(us int64)
	Malformed(n int64)
	Position() []byte
	Run() string
	Send(ctx context.Context, r *event.Request) error
}

// Options say what is followed. Parser, Paths and Publisher are needed.
type Options struct {
	// Client, with Entry, gets samples of malformed lines on REJECTS. Nil: none.
	Client *bus.Client
	// Clock paces polling and commits, and is the horizon of files that are read
	// to their end. Defaults to the system's.
	Clock clock.Clock
	// CommitEvery is the longest time between two commits of what was read.
	// Defaults to 250 ms.
	CommitEvery time.Duration
	// CommitRows is the number of rows at which there is a commit before that
	// time. Defaults to 20,000.
	CommitRows int
	// Disorder is how much later than its time a line may come: the resolution
	// of the log's times, how long the server keeps lines in its buffers, and
	// PollMost. Defaults to 5 s.
	Disorder time.Duration
	// Entry is the name of the entry point, for the subject of samples.
	Entry string
	// FromEnd begins files that are there at the very first start at their end.
	FromEnd bool
	// KeepDone is how many files that are read to their end and gone are
	// remembered, so that a copy that comes back is not read again. Defaults to
	// 4,096.
	KeepDone int
	// Linger is how long a file that was renamed or deleted is watched for lines
	// of a server that has not opened the new one yet. Defaults to 5 min.
	Linger time.Duration
	// Logger gets what an operator should see.
	Logger zerolog.Logger
	// MaxLine is the longest line in bytes; a longer one is malformed. Defaults to
	// 1 MB.
	MaxLine int
	// MaxOpen bounds the open files. Defaults to 512.
	MaxOpen int
	// MaxSkew is how far ahead of the clock a row may be before it is future.
	// Defaults to 10 min.
	MaxSkew time.Duration
	// Parser makes the parser of a file, from its path and its first bytes (at
	// least one whole line, unless that is longer). It may return the same one
	// for many files. An error makes it be asked again with more lines; a file
	// of which 100 lines are no help is refused.
	Parser func(path string, sample []byte) (LineParser, error)
	// Paths are globs as of path/filepath; "-" is Stdin.
	Paths []string
	// PollLeast and PollMost bound the time between two looks at a file: it
	// doubles while there is nothing new. Default to 50 ms and 1 s.
	PollLeast, PollMost time.Duration
	// Publisher takes the rows and keeps the position.
	Publisher Publisher
	// Registerer, if set, gets the metrics.
	Registerer prometheus.Registerer
	// Rotated are more folders where rotated files are looked for, besides the
	// one of the file.
	Rotated []string
	// ScanEvery is how often globs are looked at. Defaults to 1 s.
	ScanEvery time.Duration
	// SearchFor is how long the rest of a file that was truncated or is gone is
	// looked for among its copies. Defaults to 2 min.
	SearchFor time.Duration
	// Settle is how long a copy, or a gone file, must stand still before its
	// last line is taken without a line end. Defaults to 5 s.
	Settle time.Duration
	// Stdin is read for the path "-".
	Stdin io.Reader
}

const (
	headMost   = 1024     // bytes of a file's beginning that identify it
	startMost  = 48       // of them that are kept as they are
	weakHead   = 64       // of them say little before a line was read
	tailMost   = 256      // bytes before the position that identify a copy
	sampleMost = 64 << 10 // bytes that a parser is chosen by
	probeLines = 100      // lines that must not all fail
	// stdinPath is the path that stands for Options.Stdin.
	stdinPath = "-"
)

func (o *Options) complete() error {
	if o.Parser == nil || o.Publisher == nil || len(o.Paths) == 0 {
		return fmt.Errorf("%w: parser, publisher and paths are needed", ErrOption)
	}
	for _, p := range o.Paths {
		if _, err := filepath.Match(p, ""); err != nil {
			return fmt.Errorf("%w: path %q: %w", ErrOption, p, err)
		}
		if p == stdinPath && o.Stdin == nil {
			return fmt.Errorf("%w: path %q without a standard input", ErrOption, p)
		}
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	setDefault(&o.CommitEvery, 250*time.Millisecond)
	setDefault(&o.CommitRows, 20_000)
	setDefault(&o.Disorder, 5*time.Second)
	setDefault(&o.KeepDone, 4096)
	setDefault(&o.Linger, 5*time.Minute)
	setDefault(&o.MaxLine, 1<<20)
	setDefault(&o.MaxOpen, 512)
	setDefault(&o.MaxSkew, 10*time.Minute)
	setDefault(&o.PollLeast, 50*time.Millisecond)
	setDefault(&o.PollMost, time.Second)
	setDefault(&o.ScanEvery, time.Second)
	setDefault(&o.SearchFor, 2*time.Minute)
	setDefault(&o.Settle, 5*time.Second)
	return nil
}

func setDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}
