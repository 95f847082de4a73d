package replay

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"penstock/infra/bus"
	"penstock/infra/clock"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// answers reads decisions, commands and outcomes of placement from the beginning
// of their streams, and puts together what each window is answered by.
type answers struct {
	clock clock.Clock
	stall time.Duration

	commands, outcomes       *bus.Reader
	commandsSeq, outcomesSeq uint64 // of the last message taken in

	windows []*answer // in the order of their records, not taken yet
	asked   map[moveKey]asked
	early   map[moveKey]control.Outcome // of moves that were not read yet

	// done, if set, is told of each move that is done, as it comes.
	done func(owner, to string, version uint64)
}

type moveKey struct {
	owner   string
	version uint64
}

// asked is where a move waits for its outcome.
type asked struct {
	by  *answer
	nth int
}

// answer is a window's record with its commands and their outcomes.
type answer struct {
	end      int64
	decision *control.Decision
	parts    int // of the record that are there
	of       int
	commands int // that are there
	moves    []control.Move
	outcomes []control.Outcome // by move, in mode act
	missing  int               // outcomes
}

func (a *answer) acts() bool { return a.decision.Mode == control.Act }

// complete reports whether the whole decision was read.
func (a *answer) complete() bool {
	return a.parts == a.of && a.commands == len(a.decision.Commands)
}

func (a *answer) answered() bool { return a.complete() && a.missing == 0 }

// openAnswers starts to read both streams. close ends it.
func openAnswers(ctx context.Context, c *bus.Client, cl clock.Clock, stall time.Duration) (*answers, error) {
	a := &answers{clock: cl, stall: stall, asked: map[moveKey]asked{}, early: map[moveKey]control.Outcome{}}
	kind := string(control.Placement)
	var err error
	a.commands, err = c.Read(ctx, subject.CommandsStream, []string{subject.Decisions(kind), subject.CommandsOf(kind)}, 0)
	if err == nil {
		a.outcomes, err = c.Read(ctx, subject.OutcomesStream, []string{subject.OutcomesOf(kind)}, 0)
	}
	if err != nil {
		a.close()
		return nil, fmt.Errorf("read the answers: %w", err)
	}
	return a, nil
}

func (a *answers) close() {
	if a.commands != nil {
		a.commands.Close()
	}
	if a.outcomes != nil {
		a.outcomes.Close()
	}
}

// await returns when the window that ends at end, and all that were decided
// before it, are answered. ErrStalled after too long without a message.
func (a *answers) await(ctx context.Context, end int64) error {
	return a.until(ctx, func() bool { return a.ready(end) }, func() string { return a.lacks(end) })
}

// drain takes in all that both streams hold now, also what has not reached the
// readers yet. ErrStalled.
func (a *answers) drain(ctx context.Context, c *bus.Client) error {
	kind := string(control.Placement)
	var commands, outcomes uint64
	for _, of := range []struct {
		last            *uint64
		stream, subject string
	}{
		{&commands, subject.CommandsStream, subject.Decisions(kind)},
		{&commands, subject.CommandsStream, subject.CommandsOf(kind)},
		{&outcomes, subject.OutcomesStream, subject.OutcomesOf(kind)},
	} {
		m, err := c.Last(ctx, of.stream, of.subject)
		if errors.Is(err, bus.ErrNoMessage) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read the answers: %w", err)
		}
		*of.last = max(*of.last, m.Seq)
	}
	return a.until(ctx, func() bool { return a.commandsSeq >= commands && a.outcomesSeq >= outcomes }, func() string {
		return fmt.Sprintf("%s holds answers up to %d and %s up to %d, read were %d and %d",
			subject.CommandsStream, commands, subject.OutcomesStream, outcomes, a.commandsSeq, a.outcomesSeq)
	})
}

// until takes in messages until done; lacks says what is missing.
func (a *answers) until(ctx context.Context, done func() bool, lacks func() string) error {
	if done() {
		return nil
	}
	timer := a.clock.NewTimer(a.stall)
	defer timer.Stop()
	for !done() {
		if err := a.next(ctx, timer.C(), lacks); err != nil {
			return err
		}
		timer.Reset(a.stall)
	}
	return nil
}

// next takes in the next message of either stream.
func (a *answers) next(ctx context.Context, stalled <-chan time.Time, lacks func() string) error {
	select {
	case m, ok := <-a.commands.C():
		if !ok {
			return ended(ctx, a.commands)
		}
		return a.command(&m)
	case m, ok := <-a.outcomes.C():
		if !ok {
			return ended(ctx, a.outcomes)
		}
		return a.outcome(&m)
	case <-stalled:
		return fmt.Errorf("%w for %v: %s", ErrStalled, a.stall, lacks())
	case <-ctx.Done():
		return ctx.Err()
	}
}

// poll takes in what is there.
func (a *answers) poll(ctx context.Context) error {
	for len(a.commands.C())+len(a.outcomes.C()) > 0 {
		if err := a.next(ctx, nil, nil); err != nil {
			return err
		}
	}
	return nil
}

func ended(ctx context.Context, r *bus.Reader) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return fmt.Errorf("read the answers: %w", errors.Join(bus.ErrClosed, r.Err()))
}

// command takes in a message of COMMANDS: a record, or a command of it.
func (a *answers) command(m *bus.Msg) error {
	a.commandsSeq = m.Seq
	if m.Subject == subject.Decisions(string(control.Placement)) {
		return a.record(m)
	}
	c, err := control.DecodeCommand(m.Data)
	if err != nil {
		return fmt.Errorf("%s at sequence %d: %w", m.Subject, m.Seq, err)
	}
	w := a.find(c.Window.End.UnixMicro())
	if w == nil {
		return fmt.Errorf("%s at sequence %d: a command of the window ending %s without a record: %w",
			m.Subject, m.Seq, c.Window.End.Format(time.RFC3339), control.ErrUndecodable)
	}
	w.commands++
	if c.Placement == nil {
		return nil
	}
	for _, mv := range c.Placement.Moves {
		w.moves = append(w.moves, mv)
		if !w.acts() || c.Mode != control.Act {
			continue
		}
		key := moveKey{mv.Owner, mv.Version}
		o, ok := a.early[key]
		w.outcomes = append(w.outcomes, o)
		if ok {
			delete(a.early, key)
			continue
		}
		a.asked[key] = asked{w, len(w.outcomes) - 1}
		w.missing++
	}
	return nil
}

func (a *answers) record(m *bus.Msg) error {
	d, err := control.DecodeDecision(m.Data)
	if err != nil {
		return fmt.Errorf("%s at sequence %d: %w", m.Subject, m.Seq, err)
	}
	of := 1
	if h := m.Header[control.HeaderPart]; len(h) > 0 {
		_, n, ok := strings.Cut(h[0], "/")
		if of, err = strconv.Atoi(n); err != nil || !ok || of < 1 {
			return fmt.Errorf("%s at sequence %d: header %s: got %.40q, expected i/n: %w",
				m.Subject, m.Seq, control.HeaderPart, h[0], control.ErrUndecodable)
		}
	}
	end := d.Window.End.UnixMicro()
	w := a.find(end)
	if w == nil {
		w = &answer{end: end, decision: d, of: of}
		a.windows = append(a.windows, w)
	}
	w.parts++
	return nil
}

// find returns the window that ends then; it is almost always the last one.
func (a *answers) find(end int64) *answer {
	for i := len(a.windows) - 1; i >= 0; i-- {
		if a.windows[i].end == end {
			return a.windows[i]
		}
	}
	return nil
}

// outcome takes in a message of OUTCOMES. The first outcome of a move counts.
func (a *answers) outcome(m *bus.Msg) error {
	a.outcomesSeq = m.Seq
	o, err := control.DecodeOutcome(m.Data)
	if err != nil {
		return fmt.Errorf("%s at sequence %d: %w", m.Subject, m.Seq, err)
	}
	if o.Owner == "" || o.Status == control.AlreadyApplied || o.Status == control.Imported {
		return nil // No answer to a move.
	}
	if a.done != nil && o.Status == control.Done {
		a.done(o.Owner, o.Scope, o.Move)
	}
	key := moveKey{o.Owner, o.Move}
	w, ok := a.asked[key]
	if !ok {
		// Nobody waits for an answer to advice; the command of any other has not
		// been read yet.
		if o.Status != control.Advised {
			a.early[key] = *o
		}
		return nil
	}
	delete(a.asked, key)
	w.by.outcomes[w.nth] = *o
	w.by.missing--
	return nil
}

// ready reports whether the window is answered, and all decided before it.
func (a *answers) ready(end int64) bool {
	for _, w := range a.windows {
		if !w.answered() {
			return false
		}
		if w.end == end {
			return true
		}
	}
	return false
}

// take returns the answered windows up to end and forgets them.
func (a *answers) take(end int64) []*answer {
	n := 0
	for n < len(a.windows) && a.windows[n].end <= end && a.windows[n].answered() {
		n++
	}
	out := a.windows[:n:n]
	a.windows = a.windows[n:]
	return out
}

// lacks says what the window waits for.
func (a *answers) lacks(end int64) string {
	at := func(end int64) string { return "the window ending " + time.UnixMicro(end).UTC().Format(time.RFC3339) }
	for _, w := range a.windows {
		switch {
		case w.parts < w.of:
			return fmt.Sprintf("%s has %d of %d parts of its decision record", at(w.end), w.parts, w.of)
		case w.commands < len(w.decision.Commands):
			return fmt.Sprintf("%s has %d of %d commands", at(w.end), w.commands, len(w.decision.Commands))
		case w.missing > 0:
			for i, o := range w.outcomes {
				if o.Status == "" {
					mv := w.moves[i]
					return fmt.Sprintf("%s waits for %d outcomes, the first of owner %q, move %d from %s to %s",
						at(w.end), w.missing, mv.Owner, mv.Version, mv.From, mv.To)
				}
			}
		}
	}
	return at(end) + " waits for its decision record on " + subject.Decisions(string(control.Placement))
}
