package follow

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"time"
)

// turn looks at a stream once and reads at most a buffer of it. busy: there is
// more to read at once. The error ends the follower.
func (f *Follower) turn(ctx context.Context, s *stream) (busy bool, err error) {
	now := f.o.Clock.Now()
	s.turned, f.now = now, now.UnixMicro()
	if s.tally == nil {
		s.tally = f.m.tally(s.pattern)
	}
	switch {
	case s.pipe != nil:
		return f.turnPipe(ctx, s)
	case s.state == lost:
		f.search(s, now)
		return s.state == copied, nil
	}
	if s.source == nil && !f.reopen(s, now) {
		return false, nil
	}
	f.uses++
	s.used = f.uses
	if s.source.packed != nil {
		return f.turnPacked(ctx, s, now)
	}
	return f.turnPlain(ctx, s, now)
}

// reopen opens the file of a stream, if it has changed since it was closed.
func (f *Follower) reopen(s *stream, now time.Time) bool {
	fi, err := os.Stat(s.real)
	if err == nil {
		id, _ := idOf(fi)
		switch {
		case s.state != copied && id != s.id:
			err = os.ErrNotExist
		case !s.behind && fi.Size() == s.size && fi.ModTime().Equal(s.changed):
			s.checked = now.UnixMicro()
			f.rest(s, now)
			return false
		}
	}
	var src *source
	if err == nil {
		src, err = f.openAgain(s)
	}
	if err == nil {
		s.source, s.trouble = src, ""
		f.closeSome(s)
		return true
	}
	if errors.Is(err, os.ErrNotExist) {
		f.displaced(s, now)
		return false
	}
	f.cannot(s, err)
	s.later(now, f.o.PollLeast, f.o.PollMost)
	return false
}

// openAgain opens the file of a stream. What lies there may be another file by
// now.
func (f *Follower) openAgain(s *stream) (*source, error) {
	src, fi, err := openSource(s.real)
	if err != nil {
		return nil, err
	}
	id, _ := idOf(fi)
	if s.state == copied && compare(src, s) != holdsAll || s.state != copied && id != s.id {
		src.close()
		return nil, os.ErrNotExist
	}
	return src, nil
}

// cannot says once why a file is not read.
func (f *Follower) cannot(s *stream, err error) {
	if s.trouble == err.Error() {
		return
	}
	s.trouble = err.Error()
	f.m.troubles.WithLabelValues(s.pattern).Inc()
	f.o.Logger.Warn().Err(err).Str("path", s.path).Msg("file cannot be read; trying again")
}

// turnPlain reads a file. What it holds is compared with its fingerprint after
// the read: then it was still the same content when it was read.
func (f *Follower) turnPlain(ctx context.Context, s *stream, now time.Time) (bool, error) {
	fi, err := s.source.file.Stat()
	if err != nil {
		f.cannot(s, err)
		s.close()
		s.later(now, f.o.PollLeast, f.o.PollMost)
		return false, nil
	}
	if !s.behind && fi.Size() == s.size && fi.ModTime().Equal(s.changed) {
		s.checked = now.UnixMicro()
		return false, f.atEnd(ctx, s, fi, nil, now)
	}
	n, err := s.source.readAt(f.buf, s.cursor.offset)
	if err != nil && !errors.Is(err, io.EOF) {
		f.cannot(s, err)
		s.later(now, f.o.PollLeast, f.o.PollMost)
		return false, nil
	}
	at := s.cursor.offset
	same, fi, err := f.verify(s, n)
	switch {
	case err != nil:
		f.cannot(s, err)
		s.later(now, f.o.PollLeast, f.o.PollMost)
		return false, nil
	case !same:
		f.truncated(s, now)
		return true, nil
	case s.cursor.offset != at:
		return true, nil
	}
	s.trouble = ""
	return f.take(ctx, s, f.buf[:n], fi, now)
}

// verify compares the file with what is known of it, after n bytes were read at
// the cursor.
func (f *Follower) verify(s *stream, n int) (same bool, fi os.FileInfo, err error) {
	var head [headMost]byte
	h, err := s.source.file.ReadAt(head[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, nil, err
	}
	if fi, err = s.source.file.Stat(); err != nil {
		return false, nil, err
	}
	if fi.Size() < s.cursor.offset+int64(n) || fi.Size() < int64(h) {
		return f.shortened(s, head[:h], fi), fi, nil
	}
	return s.sees(head[:h]), fi, nil
}

// shortened deals with a file that ends before its position. With the same
// beginning it is one whose end was cut off, by a power cut or by hand: what is
// appended now is new. Else it was truncated.
func (f *Follower) shortened(s *stream, head []byte, fi os.FileInfo) bool {
	if s.head.length < headMost || !s.head.begins(head) || s.held {
		return false
	}
	f.o.Logger.Warn().Str("path", s.real).Int64("position", s.cursor.offset).Int64("size", fi.Size()).
		Msg("the end of a file was cut off; going on at its end")
	f.m.rotations.WithLabelValues(s.pattern, "shortened").Inc()
	s.cursor.offset = fi.Size()
	s.from, s.offset = s.cursor, fi.Size()
	s.tailBytes, s.tail = nil, fingerprint{}
	f.dirty = true
	return true
}

// take deals with the bytes at the cursor and what follows from their end.
func (f *Follower) take(ctx context.Context, s *stream, b []byte, fi os.FileInfo, now time.Time) (bool, error) {
	before := s.cursor.offset
	used, err := f.lines(ctx, s, b)
	if err != nil {
		return false, err
	}
	s.size, s.changed = fi.Size(), fi.ModTime()
	if used > 0 {
		s.still = now
	}
	// The rest is the beginning of a line, or lines that wait for a parser.
	end := before+int64(len(b)) >= fi.Size()
	s.behind = !end
	if !end {
		return used > 0, nil
	}
	s.checked = now.UnixMicro()
	if used > 0 {
		s.soon(now)
	}
	return false, f.atEnd(ctx, s, fi, b[used:], now)
}

// atEnd decides what to do with a file that has nothing new. rest is the
// beginning of a line, nil if it was not read this time.
func (f *Follower) atEnd(ctx context.Context, s *stream, fi os.FileInfo, rest []byte, now time.Time) error {
	if s.state == live {
		if !leadsTo(s.path, s.id) {
			f.renamed(s, now)
		}
	}
	_, links := idOf(fi)
	s.gone = links == 0
	quiet := now.Sub(s.still)
	var over time.Duration
	switch s.state {
	case live:
		f.rest(s, now)
		return nil
	case copied:
		over = f.o.Settle
	default:
		over = f.o.Linger
	}
	if quiet < over {
		f.rest(s, now)
		return nil
	}
	if rest == nil && s.cursor.offset < s.size {
		s.behind = true // to read what is there of a line
		return nil
	}
	return f.finish(ctx, s, rest, now)
}

// rest lets a stream wait, the longer the quieter it is.
func (f *Follower) rest(s *stream, now time.Time) { s.later(now, f.o.PollLeast, f.o.PollMost) }

// turnPacked reads a compressed file.
func (f *Follower) turnPacked(ctx context.Context, s *stream, now time.Time) (bool, error) {
	fi, err := s.source.file.Stat()
	if err != nil {
		f.cannot(s, err)
		s.close()
		s.later(now, f.o.PollLeast, f.o.PollMost)
		return false, nil
	}
	n, rerr := s.source.readAt(f.buf, s.cursor.offset)
	if s.cursor.offset == 0 {
		s.sees(f.buf[:min(n, headMost)])
	}
	used, err := f.lines(ctx, s, f.buf[:n])
	if err != nil {
		return false, err
	}
	if used > 0 {
		s.still = now
	}
	switch {
	case rerr == nil:
		return used > 0, nil
	case errors.Is(rerr, io.EOF):
		return false, f.finish(ctx, s, f.buf[used:n], now)
	case now.Sub(s.still) < f.o.SearchFor || now.Sub(fi.ModTime()) < f.o.SearchFor:
		f.rest(s, now) // it is being written
		return false, nil
	}
	f.o.Logger.Error().Err(rerr).Str("path", s.real).Int64("position", s.cursor.offset).
		Msg("a compressed file cannot be read to its end; the rest of it is lost")
	f.m.lost.WithLabelValues(s.pattern).Inc()
	return false, f.finish(ctx, s, nil, now)
}

// finish ends a stream, with a last line that has no end.
func (f *Follower) finish(ctx context.Context, s *stream, rest []byte, now time.Time) error {
	if len(rest) > 0 && (s.parser != nil || f.choose(s, true)) {
		used, err := f.lines(ctx, s, rest)
		if err != nil {
			return err
		}
		if rest = rest[used:]; len(rest) > 0 && !s.cursor.skipping && s.state != refused {
			if err := f.line(ctx, s, rest, len(rest)); err != nil {
				return err
			}
			s.consumed(rest)
		}
	}
	if s.held { // the other parts will never come
		if h, ok := s.parser.(Holder); ok {
			for _, part := range h.Rest() {
				f.malformed(s, part, ErrPart)
			}
		}
		s.held, s.from = false, s.cursor
	}
	s.close()
	f.dirty = true
	if s.state == refused {
		return nil
	}
	s.state = done
	if s.gone {
		f.unname(s)
	}
	s.behind, s.parser, s.rested = false, nil, now.UnixMicro()
	s.headBytes, s.tailBytes = s.start, nil
	f.forgetful = true
	f.o.Logger.Debug().Str("path", s.path).Str("file", s.real).Int64("lines", s.cursor.lines).Msg("file is read to its end and gone")
	return nil
}

// lines deals with the whole lines at the beginning of b and returns their
// bytes.
func (f *Follower) lines(ctx context.Context, s *stream, b []byte) (used int, err error) {
	noted := 0
	f.note = func() { s.consumed(b[noted:used]); noted = used }
	for {
		i := bytes.IndexByte(b[used:], '\n')
		if i < 0 {
			break
		}
		if s.parser == nil && !f.choose(s, false) {
			break
		}
		if err := f.line(ctx, s, b[used:used+i], i+1); err != nil {
			return used, err
		}
		used += i + 1
		if s.state == refused {
			break
		}
	}
	f.note()
	if used == 0 && len(b) == len(f.buf) && s.state != refused {
		f.tooLong(s, b)
		return len(b), nil
	}
	return used, nil
}

// tooLong passes over a buffer without a line end.
func (f *Follower) tooLong(s *stream, b []byte) {
	next := s.cursor
	next.offset += int64(len(b))
	if !next.skipping && !s.repeated(next.offset) {
		f.malformed(s, b, errLong)
	}
	next.skipping = true
	s.took(next, s.held)
	s.consumed(b)
	f.dirty = true
}
