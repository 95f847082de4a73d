package follow

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"
)

// pipeChunk is how much is read of standard input at once.
const pipeChunk = 64 << 10

// pipe reads standard input ahead of the follower, a few chunks at most. It has
// no position: what was read and not committed is lost by a crash.
type pipe struct {
	in     io.Reader
	chunks chan []byte
	quit   chan struct{}
	tasks  sync.WaitGroup
	once   sync.Once
	err    error // set before chunks is closed

	rest  []byte // read, and not dealt with
	ended bool
}

// openStdin begins to read standard input, if it is among the paths.
func (f *Follower) openStdin(ctx context.Context) {
	for _, p := range f.o.Paths {
		if p != stdinPath {
			continue
		}
		in := &pipe{in: f.o.Stdin, chunks: make(chan []byte, 4), quit: make(chan struct{})}
		s := newStream(known{pattern: p, path: p, real: p}, f.o.Clock.Now())
		s.pipe = in
		f.streams = append(f.streams, s)
		in.tasks.Go(func() { in.read(ctx, f.hints.stir) })
		return
	}
}

// read passes chunks on until the input ends.
func (p *pipe) read(ctx context.Context, told func()) {
	defer told()
	defer close(p.chunks)
	for {
		b := make([]byte, pipeChunk)
		n, err := p.in.Read(b)
		if n > 0 {
			select {
			case p.chunks <- b[:n]:
				told()
			case <-p.quit:
				return
			case <-ctx.Done():
				return
			}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				p.err = err
			}
			return
		}
	}
}

// stop ends the reading. One that waits for an input which cannot be interrupted
// stays until the input says something, or the process ends.
func (p *pipe) stop() {
	p.once.Do(func() { close(p.quit) })
	d, ok := p.in.(interface{ SetReadDeadline(t time.Time) error })
	if p.ended || ok && d.SetReadDeadline(time.Unix(1, 0)) == nil {
		p.tasks.Wait()
	}
}

// turnPipe deals with what was read of standard input.
func (f *Follower) turnPipe(ctx context.Context, s *stream) (bool, error) {
	p, now := s.pipe, f.o.Clock.Now()
	empty := false
	for !empty && !p.ended && len(p.rest) < len(f.buf) {
		select {
		case b, ok := <-p.chunks:
			if !ok {
				p.ended = true
				break
			}
			p.rest = append(p.rest, b...)
		default:
			empty = true
		}
	}
	b := p.rest[:min(len(p.rest), len(f.buf))]
	used, err := f.lines(ctx, s, b)
	if err != nil {
		return false, err
	}
	p.rest = append(p.rest[:0], p.rest[used:]...)
	s.size = s.cursor.offset + int64(len(p.rest))
	if p.ended && used == 0 {
		if p.err != nil {
			f.o.Logger.Error().Err(p.err).Msg("standard input cannot be read any more")
			f.m.troubles.WithLabelValues(s.pattern).Inc()
		}
		return false, f.finish(ctx, s, p.rest, now)
	}
	s.behind = !empty
	if empty {
		s.checked = now.UnixMicro()
		s.due = now.Add(f.o.PollMost) // it says so itself
	}
	return used > 0 || p.ended, nil
}
