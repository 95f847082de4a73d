package middleware

import (
	"bufio"
	"io"
	"net"
	"net/http"
)

// A handler asks a response writer what else it can do by its methods. So the
// writer has exactly those that the server's has.

// flusher is http.Flusher, and what http.ResponseController prefers to it.
type flusher interface {
	http.Flusher
	FlushError() error
}

type flushing struct{ *exchange }

func (f flushing) Flush() { _ = f.FlushError() } // as http.Flusher has it, nobody hears of it

func (f flushing) FlushError() error {
	f.head(http.StatusOK)
	return http.NewResponseController(f.ResponseWriter).Flush()
}

type hijacking struct{ *exchange }

func (h hijacking) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err == nil && h.status == 0 {
		h.status = http.StatusSwitchingProtocols
	}
	return conn, rw, err
}

type readingFrom struct{ *exchange }

// ReadFrom keeps the server's own way of sending a file.
func (f readingFrom) ReadFrom(src io.Reader) (int64, error) {
	f.head(http.StatusOK)
	n, err := f.ResponseWriter.(io.ReaderFrom).ReadFrom(src)
	f.sent += n
	return n, err
}

// writer is the exchange with the further methods of the server's writer.
func (x *exchange) writer() http.ResponseWriter {
	f, h, s := flushing{x}, hijacking{x}, readingFrom{x}
	_, canFlush := x.ResponseWriter.(http.Flusher)
	_, canHijack := x.ResponseWriter.(http.Hijacker)
	_, canReadFrom := x.ResponseWriter.(io.ReaderFrom)
	p, canPush := x.ResponseWriter.(http.Pusher)
	switch {
	case canFlush && canHijack && canReadFrom: // HTTP/1.1
		return struct {
			*exchange
			flusher
			http.Hijacker
			io.ReaderFrom
		}{x, f, h, s}
	case canFlush && canPush: // HTTP/2
		return struct {
			*exchange
			flusher
			http.Pusher
		}{x, f, p}
	case canFlush && canHijack:
		return struct {
			*exchange
			flusher
			http.Hijacker
		}{x, f, h}
	case canFlush && canReadFrom:
		return struct {
			*exchange
			flusher
			io.ReaderFrom
		}{x, f, s}
	case canHijack && canReadFrom:
		return struct {
			*exchange
			http.Hijacker
			io.ReaderFrom
		}{x, h, s}
	case canFlush:
		return struct {
			*exchange
			flusher
		}{x, f}
	case canHijack:
		return struct {
			*exchange
			http.Hijacker
		}{x, h}
	case canReadFrom:
		return struct {
			*exchange
			io.ReaderFrom
		}{x, s}
	}
	return x
}
