package bus

import (
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

var (
	// ErrConflict is returned by Publish and PublishFenced when the subject's
	// last sequence is not the expected one (API error 10071). Nothing was
	// written by this call; an earlier attempt of the same content may have
	// been, so read the last message before you call yourself fenced.
	ErrConflict = errors.New("another write came first")

	// ErrNoMessage is returned by Last when the subject has no message.
	ErrNoMessage = errors.New("no message on the subject")

	// ErrNotReady is returned by Client when the bus has no streams of ours
	// under this prefix. Nothing was made.
	ErrNotReady = errors.New("the bus has not been initialised")

	// ErrInUse is returned by Open when another process holds the folder.
	ErrInUse = errors.New("the bus folder is in use by another process")

	// ErrVersion is returned by Open when the server is too old. The
	// connection is closed.
	ErrVersion = errors.New("the NATS server is too old")

	// ErrTooLarge is returned by PublishFenced for more than MaxBatch messages
	// or a message over the server's limit. Nothing was sent.
	ErrTooLarge = errors.New("batch too large")

	// ErrOneByOne is returned by PublishTogether when the stream takes no batches
	// (one that was made before they were asked for), or knows one of the message
	// ids already. Nothing was stored: send the messages one by one.
	ErrOneByOne = errors.New("the batch can only be sent as single messages")

	// ErrLost is returned by Publish and PublishFenced when the connection was
	// lost before the acknowledgement came. Whether it was written is unknown.
	ErrLost = errors.New("the connection was lost under way")

	// ErrAway is returned by a client of a patient bus while there is no
	// connection, or the bus has not been looked at since there is one. Nothing
	// was sent.
	ErrAway = errors.New("the bus is away")

	// ErrClosed is returned by operations on a closed Bus or Client.
	ErrClosed = errors.New("the bus is closed")
)

// ErrTrimmed is a Reader's error when the messages from the wanted sequence on
// are gone. The caller must account for what it misses and read from First.
type ErrTrimmed struct {
	Stream string
	Want   uint64 // the next sequence that the reader had to deliver
	First  uint64 // the first that the stream still holds, or will hold
}

func (e *ErrTrimmed) Error() string {
	return fmt.Sprintf("stream %s: sequences %d to %d are gone", e.Stream, e.Want, e.First-1)
}

// ErrBeyond is a Reader's error when the wanted sequence lies more than one
// after the stream's last: the stream is not the one that was read before. The
// server itself would wait or skip without a word.
type ErrBeyond struct {
	Stream string
	Want   uint64
	Last   uint64
}

func (e *ErrBeyond) Error() string {
	return fmt.Sprintf("stream %s ends at sequence %d, asked for %d: not the stream that was read before",
		e.Stream, e.Last, e.Want)
}

// Diff is one field in which a stream or bucket is not as it should be.
type Diff struct {
	Of    string // "stream EVENTS", "bucket locations"
	Field string
	Have  string
	Want  string
}

func (d Diff) String() string {
	return fmt.Sprintf("%s: %s: have %s, want %s", d.Of, d.Field, d.Have, d.Want)
}

// Missing reports whether the stream or bucket is not there at all, so that Init
// would make it.
func (d Diff) Missing() bool {
	return (d.Field == fieldStream || d.Field == fieldBucket) && d.Have == fieldNone
}

// The fields of a Diff about what is missing.
const (
	fieldStream = "stream"
	fieldBucket = "bucket"
	fieldNone   = "none"
)

// DiffError is returned by Check and Init when something on the bus differs
// from what this version would make. Nothing was changed.
type DiffError struct{ Diffs []Diff }

func (e *DiffError) Error() string {
	var b strings.Builder
	b.WriteString("the bus is not as it should be:")
	for _, d := range e.Diffs {
		b.WriteString("\n  " + d.String())
	}
	return b.String()
}

// conflictCode is the API error of an expectation that did not hold. Its kin
// 10164 only says that a write is under way, so it is not a conflict.
const conflictCode jetstream.ErrorCode = jetstream.JSErrCodeStreamWrongLastSequence

// publishError turns a refused expectation into ErrConflict and keeps the
// chain of everything else.
func publishError(what string, err error) error {
	var api *jetstream.APIError
	if errors.As(err, &api) && api.ErrorCode == conflictCode {
		return fmt.Errorf("%s: %w (%w)", what, ErrConflict, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}
