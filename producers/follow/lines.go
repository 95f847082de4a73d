package follow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/prometheus/client_golang/prometheus"

	"penstock/infra/publisher"
	"penstock/schemas/event"
)

// line deals with one line of n bytes with its end: a row, malformed, or neither.
// The position passes it only then.
func (f *Follower) line(ctx context.Context, s *stream, line []byte, n int) error {
	next := spot{offset: s.cursor.offset + int64(n), lines: s.cursor.lines + 1}
	again := s.repeated(next.offset)
	line = bytes.TrimSuffix(line, []byte{'\r'})
	var held bool
	var err error
	switch {
	case s.cursor.skipping: // the end of a line that is told already
		held = s.held
	case len(line) == 0:
		held = s.held
		count(again, s.tally.blank)
	default:
		held, err = f.parse(ctx, s, line, again)
	}
	if err != nil {
		return err
	}
	if !again {
		s.tally.bytes.Add(float64(n))
		f.dirty = true
	}
	s.took(next, held)
	if !s.good && s.failed != nil && next.lines-s.base >= probeLines {
		f.refuse(s, s.failed)
	}
	return nil
}

// parse deals with the records of a line that is not empty; it reports whether
// the parser holds parts of a row.
func (f *Follower) parse(ctx context.Context, s *stream, line []byte, again bool) (held bool, err error) {
	several, more := s.parser.(Several)
	for n := int64(0); ; n++ {
		f.row = event.NewRequest(0)
		if n == 0 {
			err = s.parser.Parse(line, &f.row)
		} else {
			err = several.Next(&f.row)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		held = errors.Is(err, ErrPart)
		published := again || s.cursor.offset == s.offset && n < s.within
		if err := f.record(ctx, s, line, err, published, n); err != nil {
			return held, err
		}
		if !more {
			break
		}
	}
	if h, ok := s.parser.(Holder); ok {
		held = h.Held()
	}
	return held, nil
}

// record deals with one record of a line, the nth from 0: a row in f.row, or the
// parser's error. again: it was published before the start.
func (f *Follower) record(ctx context.Context, s *stream, line []byte, err error, again bool, nth int64) error {
	if err == nil {
		err = f.row.Check()
	}
	switch {
	case errors.Is(err, ErrPart):
		count(again, s.tally.part)
	case errors.Is(err, ErrNoRow):
		count(again, s.tally.noRow)
	case again:
		s.good = s.good || err == nil
	case err != nil:
		if s.failed == nil {
			s.failed = fmt.Errorf("line %d: %w", s.cursor.lines+1, err)
		}
		f.malformed(s, line, err)
	default:
		return f.send(ctx, s, nth)
	}
	return nil
}

// send publishes the row with its mark. If the group is full it is committed
// first, in the middle of a line with several records if need be.
func (f *Follower) send(ctx context.Context, s *stream, nth int64) error {
	r := &f.row
	r.Mark = publisher.Classify(r.Time, f.horizon, f.now, f.o.MaxSkew.Microseconds())
	err := f.o.Publisher.Send(ctx, r)
	if errors.Is(err, publisher.ErrGroup) {
		f.note()
		if s.cursor.offset == s.offset {
			s.within = nth
		}
		if err = f.commit(ctx); err == nil {
			err = f.o.Publisher.Send(ctx, r)
		}
	}
	if err != nil {
		return fmt.Errorf("follow %s: %w", s.path, err)
	}
	f.rows++
	s.good, s.failed = true, nil
	if r.Mark != event.Future {
		s.last = max(s.last, r.Time)
	}
	s.tally.marks[r.Mark].Inc()
	s.tally.row.Inc()
	return nil
}

// malformed counts a line, and keeps it as a sample.
func (f *Follower) malformed(s *stream, line []byte, err error) {
	f.o.Publisher.Malformed(1)
	s.tally.malformed.Inc()
	f.samples.add(s, line, err)
	f.dirty = true
}

// count counts a line, unless it was counted before the start.
func count(again bool, c prometheus.Counter) {
	if !again {
		c.Inc()
	}
}

// refuse leaves a file alone of which no line could be read.
func (f *Follower) refuse(s *stream, err error) {
	s.state, s.behind = refused, false
	s.close()
	s.parser = nil
	f.dirty = true
	f.m.refused.WithLabelValues(s.pattern).Inc()
	f.o.Logger.Error().Err(err).Str("path", s.path).Int64("lines", s.cursor.lines).
		Msg("none of a file's first lines could be read; it is refused until the next start")
}

// choose makes the parser of a stream from its first bytes. False: there are too
// few of them yet, or the file is refused. last: there will be no more.
func (f *Follower) choose(s *stream, last bool) bool {
	var sample []byte
	switch {
	case s.pipe != nil:
		sample = s.pipe.rest
	default:
		var err error
		if sample, err = s.source.head(sampleMost); err != nil && !errors.Is(err, errIncomplete) {
			f.cannot(s, err)
			return false
		}
	}
	if end := bytes.LastIndexByte(sample, '\n'); end >= 0 {
		sample = sample[:end+1]
	} else if !last && len(sample) < sampleMost {
		return false
	}
	if len(sample) == s.sampled && !last {
		return false
	}
	s.sampled = len(sample)
	p, err := f.o.Parser(s.path, sample)
	if err == nil {
		s.parser = p
		return true
	}
	if last || len(sample) >= sampleMost/2 || bytes.Count(sample, []byte{'\n'}) >= probeLines {
		f.refuse(s, err)
	}
	return false
}
