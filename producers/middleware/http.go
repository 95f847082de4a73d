package middleware

import (
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"penstock/infra/clock"
	"penstock/schemas/event"
)

// HTTP wraps a handler so that each of its requests is recorded when it has been
// answered. The handler sees a response writer that can do what the server's can
// (http.Flusher, http.Hijacker, io.ReaderFrom, http.Pusher, and all of
// http.ResponseController).
//
// A handler that panics is recorded with status 500 and goes on panicking. One
// that takes the connection over (a WebSocket) is recorded when it returns, with
// status 101 and without the bytes that went over the connection then.
func (r *Recorder) HTTP(next http.Handler, rules Rules) http.Handler {
	if rules.Op == nil {
		rules.Op = OpOf
	}
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if rules.Skip != nil && r.skips(&rules, q) {
			next.ServeHTTP(w, q)
			return
		}
		x := &exchange{ResponseWriter: w, clock: r.o.Clock, began: r.o.Clock.Now()}
		if q.Body != nil && q.Body != http.NoBody {
			x.body.ReadCloser = q.Body
			q.Body = &x.body
		}
		// No recover: whoever looks at the panic sees where it began.
		defer func() { r.answered(x, q, &rules) }()
		next.ServeHTTP(x.writer(), q)
		x.head(http.StatusOK)
		x.finished = true
	})
}

// Timed only adds Server-Timing to the answers of a handler, and records nothing:
// for a service behind an entry point that does.
func Timed(next http.Handler) http.Handler {
	clk := clock.System()
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		x := &exchange{ResponseWriter: w, clock: clk, began: clk.Now()}
		next.ServeHTTP(x.writer(), q)
		x.head(http.StatusOK)
	})
}

func (r *Recorder) skips(rules *Rules, q *http.Request) (skip bool) {
	r.guard("skip", func() { skip = rules.Skip(q) })
	return skip
}

// answered records an exchange that is over.
func (r *Recorder) answered(x *exchange, q *http.Request, rules *Rules) {
	now := r.o.Clock.Now()
	row := event.NewRequest(now.UnixMicro())
	row.Service = now.Sub(x.began).Microseconds()
	row.Status = int32(x.status)
	if !x.finished {
		row.Status = http.StatusInternalServerError
	}
	if q.Method == http.MethodHead {
		x.sent = 0 // What the handler wrote the server has left out.
	}
	row.Bytes = min(x.sent+x.body.read.Load(), event.MaxRequestBytes)
	row.Trace = traceOf(q.Header.Get("Traceparent"))
	r.guard("op", func() { row.Op = rules.Op(q) })
	for _, f := range [...]struct {
		name string
		rule func(*http.Request) string
		into *string
	}{{"user", rules.User, &row.User}, {"owner", rules.Owner, &row.Owner}, {"class", rules.Class, &row.Class}} {
		if f.rule != nil {
			r.guard(f.name, func() { *f.into = f.rule(q) })
		}
	}
	if row.User == "" {
		row.User = r.address(q.RemoteAddr)
	}
	if rules.Fill != nil {
		r.guard("fill", func() { rules.Fill(q, &row) })
	}
	r.Record(&row)
}

// exchange is one request and its answer. It is the response writer that the
// handler gets, see writer.
type exchange struct {
	http.ResponseWriter
	clock    clock.Clock
	began    time.Time
	status   int // 0 until there is one
	sent     int64
	finished bool // the handler has returned
	body     countedBody
}

// Unwrap is for http.ResponseController.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// head notes the status and adds Server-Timing, once, before the header goes out.
func (x *exchange) head(status int) {
	if x.status != 0 {
		return
	}
	x.status = status
	x.Header().Add("Server-Timing", string(appendTiming(make([]byte, 0, 32), x.clock.Now().Sub(x.began))))
}

// appendTiming appends the metric of Server-Timing, in ms.
func appendTiming(b []byte, d time.Duration) []byte {
	b = append(b, "app;dur="...)
	return strconv.AppendFloat(b, float64(d.Microseconds())/1000, 'f', 3, 64)
}

// WriteHeader passes informational answers (103 Early Hints) through: the answer
// is still to come.
func (x *exchange) WriteHeader(status int) {
	if status >= 200 || status == http.StatusSwitchingProtocols {
		x.head(status)
	}
	x.ResponseWriter.WriteHeader(status)
}

func (x *exchange) Write(b []byte) (int, error) {
	x.head(http.StatusOK)
	n, err := x.ResponseWriter.Write(b)
	x.sent += int64(n)
	return n, err
}

// WriteString is for io.WriteString.
func (x *exchange) WriteString(s string) (int, error) {
	x.head(http.StatusOK)
	n, err := io.WriteString(x.ResponseWriter, s)
	x.sent += int64(n)
	return n, err
}

// countedBody counts what is read of a request's body. A handler may read on
// while it already answers, or after it has returned.
type countedBody struct {
	io.ReadCloser
	read atomic.Int64
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read.Add(int64(n))
	return n, err
}
