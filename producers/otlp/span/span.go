package span

import (
	"fmt"
	"math"
	"unicode/utf8"

	"penstock/schemas/event"
)

// Unknown is a time or a duration that a span does not have.
const Unknown = math.MinInt64

// Kind is a span's part in a call, with the numbers of OTLP.
type Kind uint8

// The kinds. A format that has none gives Unspecified.
const (
	Unspecified Kind = iota
	Internal
	Server
	Client
	Producer
	Consumer
)

var kindNames = [...]string{"unspecified", "internal", "server", "client", "producer", "consumer"}

// String returns the kind's name in small letters.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// ParseKind reads a name as OTLP, Jaeger and Zipkin write them ("SERVER",
// "SPAN_KIND_SERVER", "server"); anything else is Unspecified.
func ParseKind(s string) Kind {
	const prefix = len("SPAN_KIND_")
	if len(s) > prefix && equalFold(s[:prefix], "span_kind_") {
		s = s[prefix:]
	}
	for k, name := range kindNames {
		if equalFold(s, name) {
			return Kind(k)
		}
	}
	return Unspecified
}

// equalFold compares with a name in small ASCII letters.
func equalFold(s, name string) bool {
	if len(s) != len(name) {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != name[i] {
			return false
		}
	}
	return true
}

// Span is one span, or one half of a span that two hosts report under one id.
type Span struct {
	Trace      Trace
	ID, Parent ID // Parent is zero for none
	// Start is in ns since 1970 by the host's clock, Duration in ns; either may be
	// Unknown. A duration is never negative, see Backwards.
	Start, Duration int64
	// Bytes is the payload both ways, 0 if the span doesn't say.
	Bytes int64
	// Status is the HTTP status, or what stands for it; event.NullStatus if the
	// span doesn't say.
	Status int32
	Kind   Kind
	Op     event.Op
	// Shared says that ID is the client's, and this is the server's half (Zipkin).
	Shared bool
	// Follows says that the parent doesn't wait for this (FOLLOWS_FROM).
	Follows bool
	// Backwards says that the span ended before it began; its Duration is Unknown.
	Backwards bool
	// Component at Site on Server did what the span is about.
	Component, Site, Server string
	// Callee is whom a client calls, Caller who calls a server, as far as this
	// half knows; both are names of components.
	Callee, Caller string
	// Class, Owner and User are columns of the request.
	Class, Owner, User string
	// Heard is from when on a span's other half is waited for; whoever joins spans
	// sets it.
	Heard int64
}

// Reset empties the span: all is unknown.
func (s *Span) Reset() {
	*s = Span{Start: Unknown, Duration: Unknown, Status: event.NullStatus}
}

// Times sets Start and Duration from both ends in ns; 0 is unknown, as in OTLP.
func (s *Span) Times(start, end uint64) error {
	if start > math.MaxInt64 || end > math.MaxInt64 {
		return fmt.Errorf("times %d to %d, expected ns since 1970: %w", start, end, ErrMalformed)
	}
	s.Start, s.Duration = Unknown, Unknown
	if start > 0 {
		s.Start = int64(start)
	}
	if start > 0 && end > 0 {
		s.last(int64(end) - int64(start))
	}
	return nil
}

// Micros sets Start and Duration from µs. What is negative is not there; a
// duration of 0 is one.
func (s *Span) Micros(start, duration int64) error {
	const most = math.MaxInt64 / 1000
	if start > most || duration > most || start < -most || duration < -most && duration != Unknown {
		return fmt.Errorf("times %d µs for %d µs: %w", start, duration, ErrMalformed)
	}
	s.Start, s.Duration = Unknown, Unknown
	if start > 0 {
		s.Start = start * 1000
	}
	if duration != Unknown {
		s.last(duration * 1000)
	}
	return nil
}

func (s *Span) last(duration int64) {
	if duration < 0 {
		s.Backwards = true
		return
	}
	s.Duration = duration
}

// End returns when the span ended in ns, Unknown if it doesn't say.
func (s *Span) End() int64 {
	if s.Start == Unknown || s.Duration == Unknown {
		return Unknown
	}
	return s.Start + s.Duration
}

// Serves reports whether this is the callee's half of a call, or a consumer.
func (s *Span) Serves() bool { return s.Shared || s.Kind == Server || s.Kind == Consumer }

// Asks reports whether this is by its kind the caller's half.
func (s *Span) Asks() bool { return s.Kind == Client && !s.Shared }

// Check returns an error that wraps ErrMalformed if no request can come of the
// span: no trace or id, a time outside 1900 to 2200, a duration beyond
// event.MaxDelay, texts that are too long or not UTF-8.
func (s *Span) Check() error {
	if s.Trace == (Trace{}) {
		return fmt.Errorf("no trace id: %w", ErrMalformed)
	}
	if s.ID == (ID{}) {
		return fmt.Errorf("no span id: %w", ErrMalformed)
	}
	const µs = 1000
	if s.Start != Unknown && s.Start/µs > event.MaxTime {
		return fmt.Errorf("start %d ns, expected a time before 2200: %w", s.Start, ErrMalformed)
	}
	if s.Duration != Unknown && (s.Duration < 0 || s.Duration/µs > event.MaxDelay) {
		return fmt.Errorf("duration %d ns, expected at most 100 years: %w", s.Duration, ErrMalformed)
	}
	if end := s.End(); end != Unknown && (end < s.Start || end/µs > event.MaxTime) {
		return fmt.Errorf("end %d ns, expected a time before 2200: %w", end, ErrMalformed)
	}
	if s.Bytes < 0 || s.Bytes > event.MaxRequestBytes {
		return fmt.Errorf("bytes %d: %w", s.Bytes, ErrMalformed)
	}
	for _, t := range [...]string{
		s.Component, s.Site, s.Server, s.Callee, s.Caller, s.Class, s.Owner, s.User,
	} {
		if len(t) > event.MaxID {
			return fmt.Errorf("text %.40q… of %d bytes, expected at most %d: %w", t, len(t), event.MaxID, ErrMalformed)
		}
		if !utf8.ValidString(t) {
			return fmt.Errorf("text %.40q, expected UTF-8: %w", t, ErrMalformed)
		}
	}
	return nil
}
