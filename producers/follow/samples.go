package follow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"penstock/infra/bus"
	"penstock/producers/accesslog"
	"penstock/schemas/event"
	"penstock/schemas/reject"
	"penstock/schemas/subject"
)

// waiting is how many samples wait for the bus at most.
const waiting = 64

// samples sends malformed lines to REJECTS, the first ones of the run. It never
// holds up the reading: while the bus is away, or too many come at once, lines are
// counted and not sampled.
type samples struct {
	o     *Options
	queue chan bus.Msg
	seen  int
	group []bus.Msg // since the last commit
	tasks sync.WaitGroup
	end   context.CancelFunc
}

func newSamples(o Options) *samples {
	return &samples{o: &o, queue: make(chan bus.Msg, waiting)}
}

func (s *samples) start() {
	ctx, end := context.WithCancel(context.Background())
	s.end = end
	if s.o.Client != nil {
		s.tasks.Go(func() { s.send(ctx) })
	}
}

func (s *samples) stop() {
	s.end()
	s.tasks.Wait()
}

// send publishes what comes until ctx ends, and then what is there already, if
// the bus is.
func (s *samples) send(ctx context.Context) {
	for {
		select {
		case m := <-s.queue:
			s.publish(ctx, m)
		case <-ctx.Done():
			return
		}
	}
}

func (s *samples) publish(ctx context.Context, m bus.Msg) {
	id := m.Header[event.HeaderRun][0] + "/" + m.Header[reject.HeaderFile][0] + "/" + m.Header[reject.HeaderLine][0]
	if _, err := s.o.Client.Publish(ctx, m, bus.MsgID(id)); err != nil {
		s.o.Logger.Debug().Err(err).Msg("a malformed line cannot be sampled")
	}
}

// add takes a malformed line. It is sampled once it is committed.
func (s *samples) add(st *stream, line []byte, err error) {
	if s.o.Client == nil || s.seen >= reject.Samples || len(s.group) >= waiting {
		return
	}
	s.seen++
	field, expected := explain(err)
	s.group = append(s.group, bus.Msg{
		Subject: subject.Rejects("malformed", s.o.Entry), Data: bytes.Clone(line[:min(len(line), sampleMost)]),
		Header: map[string][]string{
			event.HeaderRun: {s.o.Publisher.Run()}, reject.HeaderReason: {"malformed"},
			reject.HeaderField: {reject.Text(field)}, reject.HeaderExpected: {reject.Text(expected)},
			reject.HeaderError: {reject.Text(err.Error())},
			reject.HeaderFile:  {reject.Text(st.path)}, reject.HeaderLine: {strconv.FormatInt(st.cursor.lines+1, 10)},
		},
	})
}

// committed passes on the samples of a group.
func (s *samples) committed() {
	for _, m := range s.group {
		select {
		case s.queue <- m:
		default: // the bus is slow or away; the line is counted
		}
	}
	s.group = s.group[:0]
}

// explain names the field of a line that was wrong, and what was expected.
func explain(err error) (field, expected string) {
	var line *accesslog.LineError
	var value *event.FieldError
	switch {
	case errors.As(err, &line):
		return line.Field, line.Expected
	case errors.As(err, &value):
		return value.Field, value.Expected
	case errors.Is(err, errLong):
		return "line", "a line end"
	}
	return reject.Explain(err, fmt.Sprintf("a line of the format (%v)", err))
}
