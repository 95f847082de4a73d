package control

import (
	"fmt"
	"slices"
	"time"
)

// MaxID is the greatest length of an owner, a site or another scope in bytes: a
// longer one could make a subject that closes the connection (DESIGN §3).
const MaxID = 1024

// DecodeDecision reads a decision record. The error names the field and what
// was expected, and wraps ErrUndecodable; unknown fields are ignored.
func DecodeDecision(body []byte) (*Decision, error) {
	d := new(Decision)
	if err := decode(body, "decision", d); err != nil {
		return nil, err
	}
	c := checker{what: "decision"}
	c.head(d.Version, d.Kind, d.Mode, d.Window)
	for i, r := range d.Reasons {
		if r.Code == "" || r.Count < 0 || len(r.Owner) > MaxID || len(r.Scope) > MaxID {
			c.fail(fmt.Sprintf("reasons[%d]", i), fmt.Sprintf("%+v", r), "a code, a count of 0 or more, and ids of at most 1024 bytes")
		}
	}
	for i, r := range d.Commands {
		if r.Scope == "" || len(r.Scope) > MaxID || r.Epoch == 0 || r.Moves < 0 {
			c.fail(fmt.Sprintf("commands[%d]", i), fmt.Sprintf("%+v", r), "a scope, an epoch of at least 1, and moves of 0 or more")
		}
	}
	if m := d.Operator.Mode; m != "" {
		c.mode("operator.mode", m)
	}
	if c.err != nil {
		return nil, c.err
	}
	return d, nil
}

// DecodeCommandOf is DecodeCommand for a subject of one kind: a command of another is
// ErrUndecodable there, so that the payload of the kind is never nil.
func DecodeCommandOf(kind Kind, body []byte) (*Command, error) {
	m, err := DecodeCommand(body)
	if err == nil && m.Kind != kind {
		return nil, fmt.Errorf("command of kind %s, expected %s: %w", m.Kind, kind, ErrUndecodable)
	}
	return m, err
}

// DecodeCommand reads a command and checks that it has the payload of its kind
// and no other. The error names the field and what was expected, and wraps
// ErrUndecodable; unknown fields are ignored.
func DecodeCommand(body []byte) (*Command, error) {
	m := new(Command)
	if err := decode(body, "command", m); err != nil {
		return nil, err
	}
	c := checker{what: "command"}
	c.head(m.Version, m.Kind, m.Mode, m.Window)
	c.id("scope", m.Scope)
	if m.Epoch == 0 {
		c.fail("epoch", "0", "at least 1")
	}
	if m.Supersedes >= m.Epoch {
		c.fail("supersedes", fmt.Sprint(m.Supersedes), "an epoch below this one's")
	}
	if d, err := time.ParseDuration(m.TTL); err != nil || d <= 0 {
		c.fail("ttl", m.TTL, "a duration such as 10m")
	}
	switch {
	case m.Kind == Placement && m.Placement == nil:
		c.fail("placement", "", "moves")
	case m.Kind != Placement && m.Placement != nil:
		c.fail("placement", "moves", "nothing, in a command of kind "+string(m.Kind))
	case m.Placement != nil:
		c.moves(m.Placement.Moves)
	}
	switch {
	case m.Kind == Split && m.Split == nil:
		c.fail("split", "", "a table")
	case m.Kind != Split && m.Split != nil:
		c.fail("split", "a table", "nothing, in a command of kind "+string(m.Kind))
	case m.Split != nil:
		c.split(m.Split)
	}
	switch {
	case m.Kind == Servers && m.Servers == nil:
		c.fail("servers", "", "a table")
	case m.Kind != Servers && m.Servers != nil:
		c.fail("servers", "a table", "nothing, in a command of kind "+string(m.Kind))
	case m.Servers != nil:
		c.servers(m.Servers)
	}
	switch {
	case m.Kind == Coding && m.Coding == nil:
		c.fail("coding", "", "a table")
	case m.Kind != Coding && m.Coding != nil:
		c.fail("coding", "a table", "nothing, in a command of kind "+string(m.Kind))
	case m.Coding != nil:
		c.coding(m.Coding)
	}
	if c.err != nil {
		return nil, c.err
	}
	return m, nil
}

// DecodeOutcome reads an outcome: of a move, which has owner and move, or of a
// table, which has an epoch. The error names the field and what was expected,
// and wraps ErrUndecodable; unknown fields are ignored.
func DecodeOutcome(body []byte) (*Outcome, error) {
	o := new(Outcome)
	if err := decode(body, "outcome", o); err != nil {
		return nil, err
	}
	c := checker{what: "outcome"}
	c.version(o.Version)
	c.kind(o.Kind)
	c.id("scope", o.Scope)
	if o.Kind == Placement {
		c.id("owner", o.Owner)
		if o.Move == 0 && o.Status != Imported {
			c.fail("move", "0", "the version of the move, at least 1")
		}
	} else if o.Epoch == 0 {
		c.fail("epoch", "0", "the epoch of the table, at least 1")
	}
	switch o.Status {
	case Done, Failed, Refused, Expired, Advised, AlreadyApplied, Imported:
	default:
		c.fail("status", string(o.Status), "done, failed, refused, expired, advised, already-applied or imported")
	}
	if o.Status == Imported && o.Kind != Placement {
		c.fail("status", string(o.Status), "an owner's location to be of kind placement")
	}
	c.failed(o.Kind, o.Status, o.Failed)
	if o.Bytes < 0 {
		c.fail("bytes", fmt.Sprint(o.Bytes), "0 or more")
	}
	if c.err != nil {
		return nil, c.err
	}
	return o, nil
}

// DecodeLocation reads a value of KV locations. The error names the field and
// what was expected, and wraps ErrUndecodable; unknown fields are ignored.
func DecodeLocation(body []byte) (*Location, error) {
	l := new(Location)
	if err := decode(body, "location", l); err != nil {
		return nil, err
	}
	c := checker{what: "location"}
	c.id("site", l.Site)
	switch l.State {
	case Live, Moving, Retired:
	default:
		c.fail("state", string(l.State), "live, moving or retired")
	}
	if c.err != nil {
		return nil, c.err
	}
	return l, nil
}

// checker keeps the first fault of a message.
type checker struct {
	what string
	err  error
}

func (c *checker) fail(field, got, expected string) {
	if c.err == nil {
		c.err = invalid(c.what, field, got, expected)
	}
}

func (c *checker) head(version int, kind Kind, mode Mode, w Window) {
	c.version(version)
	c.kind(kind)
	c.mode("mode", mode)
	if !w.Start.Before(w.End) {
		c.fail("window", w.Start.UTC().Format(time.RFC3339Nano)+" to "+w.End.UTC().Format(time.RFC3339Nano), "a start before its end")
	}
}

func (c *checker) version(v int) {
	if v != 1 {
		c.fail("version", fmt.Sprint(v), "1")
	}
}

func (c *checker) kind(k Kind) {
	if !slices.Contains(Kinds, k) {
		c.fail("kind", string(k), "placement, split, servers or coding")
	}
}

func (c *checker) mode(field string, m Mode) {
	if m != Observe && m != Advise && m != Act {
		c.fail(field, string(m), "observe, advise or act")
	}
}

func (c *checker) id(field, id string) {
	if id == "" || len(id) > MaxID {
		c.fail(field, id, fmt.Sprintf("1 to %d bytes", MaxID))
	}
}

func (c *checker) moves(moves []Move) {
	if len(moves) > MaxMoves {
		c.fail("placement.moves", fmt.Sprint(len(moves), " moves"), fmt.Sprintf("at most %d", MaxMoves))
		return
	}
	for i, m := range moves {
		if len(m.Owner) > MaxID || m.Owner == "" || m.From == "" || m.To == "" || m.Version == 0 || m.From == m.To || m.Bytes < 0 {
			c.fail(fmt.Sprintf("placement.moves[%d]", i), fmt.Sprintf("%+v", m),
				"owner of at most 1024 bytes, from, another to, a version of at least 1, bytes of 0 or more")
		}
	}
}

func invalid(what, field, got, expected string) error {
	return fmt.Errorf("%s: field %s: got %.80q, expected %s: %w", what, field, got, expected, ErrUndecodable)
}
