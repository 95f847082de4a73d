package entry

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"penstock/infra/clock"
)

// body is the body of a client's request. It bounds size and slowness, counts,
// and keeps the first bytes, so that the request can be sent again as long as no
// more than those have been read.
//
// Attempts read it through sendings, one at a time: opening one ends the one
// before.
type body struct {
	src     io.ReadCloser
	control *http.ResponseController
	request *http.Request
	sockets clock.Clock
	clock   clock.Clock // of measures, as the attempts'
	limit   int64       // bytes; 0 is none
	rate    int64       // bytes a second; 0 is none
	grace   time.Duration

	turn    sync.Mutex // who reads; held while the client is waited for
	kept    []byte
	keep    int
	waited  time.Duration
	current *sending
	trailer http.Header // of the request that goes on, filled at the end

	mu    sync.Mutex // of what follows; never held for long
	whole bool       // kept is all that was read
	talks bool       // the answer has begun
	read  int64
	last  time.Time // when the last bytes came; zero: none did
	err   error     // what reading ended with; io.EOF is the end
}

// sending is the body as one attempt reads it.
type sending struct {
	b  *body
	at int // in kept
}

// open returns the body from its beginning, for one more attempt; errNotKept if
// the beginning is gone. It waits for a Read that waits for the client.
func (b *body) open() (io.ReadCloser, error) {
	b.turn.Lock()
	defer b.turn.Unlock()
	if !b.again() {
		return nil, errNotKept
	}
	b.current = &sending{b: b}
	return b.current, nil
}

// again reports whether open would succeed.
func (b *body) again() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.whole
}

// state returns how many bytes came, and what reading ended with, nil if it
// didn't.
func (b *body) state() (read int64, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.read, b.err
}

// latest returns when the last bytes came.
func (b *body) latest() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last
}

// end makes reads fail from now on. One that waits for the client is woken: it
// may set its own deadline after this one, so this is set until it has ended.
func (b *body) end() {
	for !b.turn.TryLock() {
		_ = b.control.SetReadDeadline(past) // where it can't be set the client's next bytes end it
		_ = b.sockets.Sleep(context.Background(), time.Millisecond)
	}
	defer b.turn.Unlock()
	b.current = nil
	_, err := b.state()
	if isEnd(err) {
		return
	}
	if err == nil {
		b.note(0, errSuperseded)
	}
	// net/http reads some of the rest, so that the client gets to see the answer
	// before the connection is cut under what it still sends; but not for long.
	_ = b.control.SetReadDeadline(b.sockets.Now().Add(linger))
}

// linger is how long the rest of a body is read for, after an answer that came
// before its end.
const linger = 250 * time.Millisecond

// note adds to what was read, and says that reading has ended if err isn't nil.
func (b *body) note(n int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n > 0 {
		b.last = b.clock.Now()
	}
	b.read += int64(n)
	b.err = err
}

// hurry bounds how long the next bytes may take, unless the answer has begun.
func (b *body) hurry(until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.talks {
		_ = b.control.SetReadDeadline(until) // where it can't be set, nothing is slow
	}
}

// converse says that the answer begins. If the body has not ended by then both
// talk to each other, as streams of gRPC do, and either may keep silent: whether
// that lasts too long is for the server to say.
func (b *body) converse() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil && b.rate > 0 {
		b.talks = true
		_ = b.control.SetReadDeadline(time.Time{})
	}
}

var past = time.Unix(1, 0)

func isEnd(err error) bool { return errors.Is(err, io.EOF) }

// Read implements io.Reader.
func (s *sending) Read(p []byte) (int, error) {
	b := s.b
	b.turn.Lock()
	defer b.turn.Unlock()
	if b.current != s {
		return 0, errSuperseded
	}
	if s.at < len(b.kept) {
		n := copy(p, b.kept[s.at:])
		s.at += n
		return n, nil
	}
	if _, err := b.state(); err != nil || len(p) == 0 {
		return 0, err
	}
	n, err := b.next(p)
	if !b.again() {
		return n, err
	}
	if len(b.kept)+n > b.keep {
		b.mu.Lock()
		b.whole = false
		b.mu.Unlock()
		b.kept, s.at = nil, 0
		return n, err
	}
	b.kept = append(b.kept, p[:n]...)
	s.at += n
	return n, err
}

// Close implements io.Closer. The body is the entry point's to close.
func (*sending) Close() error { return nil }

// next reads from the client.
func (b *body) next(p []byte) (int, error) {
	read, _ := b.state()
	if b.limit > 0 && int64(len(p)) > b.limit-read {
		p = p[:b.limit-read+1]
	}
	var before time.Time
	if b.rate > 0 {
		before = b.sockets.Now()
		b.hurry(before.Add(b.grace + time.Duration(float64(read)/float64(b.rate)*float64(time.Second)) - b.waited))
	}
	n, err := b.src.Read(p)
	if b.rate > 0 {
		b.waited += b.sockets.Now().Sub(before)
		if err != nil {
			_ = b.control.SetReadDeadline(time.Time{}) // the answer may take its time
		}
	}
	switch {
	case b.limit > 0 && read+int64(n) > b.limit:
		n, err = int(b.limit-read), errTooLarge
	case isEnd(err):
		for name := range b.trailer {
			b.trailer[name] = b.request.Trailer[name]
		}
		err = io.EOF
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = errTooSlow
	}
	b.note(n, err)
	if n > 0 {
		return n, nil // the end comes with the next read
	}
	return 0, err
}
