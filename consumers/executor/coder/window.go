package coder

import (
	"errors"
	"io"
	"sync"
)

// errShut is what a task gets whose memory was taken away from it.
var errShut = errors.New("the memory of the chunk is needed elsewhere")

// window is memory that a task may use until it is shut. A task that was cancelled may
// go on for a while, in the kernel or in a client library: once shut has returned it
// neither reads nor writes the memory, which can be used for the next segment at once.
type window struct {
	mu   sync.Mutex
	b    []byte
	at   int
	gone bool
}

// Write fills the memory. It returns io.ErrShortWrite for more than fits.
func (w *window) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gone {
		return 0, errShut
	}
	n := copy(w.b[w.at:], p)
	w.at += n
	if n < len(p) {
		return n, io.ErrShortWrite
	}
	return n, nil
}

// buffers are what bytes go through that a store has read, before they are known to be
// wanted still.
var buffers = sync.Pool{New: func() any { return new([128 << 10]byte) }}

// ReadFrom implements io.ReaderFrom: like Write, of all that r has.
func (w *window) ReadFrom(r io.Reader) (int64, error) {
	b := buffers.Get().(*[128 << 10]byte) //nolint:forcetypeassert // nothing else is put there
	defer buffers.Put(b)
	return io.CopyBuffer(struct{ io.Writer }{w}, r, b[:])
}

// Read gives what is in the memory.
func (w *window) Read(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gone {
		return 0, errShut
	}
	if w.at == len(w.b) {
		return 0, io.EOF
	}
	n := copy(p, w.b[w.at:])
	w.at += n
	return n, nil
}

// done tells whether all of the memory has been used.
func (w *window) done() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at == len(w.b)
}

// shut takes the memory away. It says how much of it was used, and may be called twice.
func (w *window) shut() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gone, w.b = true, nil
	return w.at
}
