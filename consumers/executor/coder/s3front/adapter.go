package s3front

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
	"github.com/versity/versitygw/s3err"
)

// request is what this package knows of a request, beside what versitygw does.
type request struct {
	target

	http *http.Request
	path string // decoded, and as it came: with a slash behind a bucket or without
	op   *operation
	raw  *rawBody
	// fault is what is wrong with it already, nil for nothing.
	fault error
	// body is what the backend reads, of operations that stream.
	body *body
	// source is what is copied, of operations that copy.
	source target
	// access is the key that signed it; code S3's name of the error that it got.
	access, code string
	// more are headers of the answer that versitygw has no place for.
	more http.Header
}

// requestKey is where a request is found in the contexts of versitygw.
type requestKey struct{}

// requestOf returns the request that a context of versitygw's is of. There is one in
// each that comes from ServeHTTP.
func requestOf(ctx context.Context) *request {
	q, _ := ctx.Value(requestKey{}).(*request)
	return q
}

// scratch is what one request needs, and is used again.
type scratch struct {
	ctx    fasthttp.RequestCtx
	empty  fasthttp.Request
	wire   bytes.Buffer
	source bytes.Reader
	reader *bufio.Reader
}

func newScratch() *scratch { return &scratch{reader: bufio.NewReaderSize(nil, 2*maxRead)} }

// ServeHTTP implements http.Handler.
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := f.o.Clock.Now()
	q := &request{http: r, more: http.Header{}}
	q.raw = &rawBody{r: r.Body, control: http.NewResponseController(w), pace: pace{idle: f.o.Idle, rate: f.o.Rate}, clock: f.o.Clock}
	sc, _ := f.scratch.Get().(*scratch)
	a := &answer{w: w, q: q, ctx: &sc.ctx}
	defer f.ended(a, sc, began)
	q.read(f.ops, sc)
	sc.ctx.SetUserValue(requestKey{}, q)
	f.handle(&sc.ctx)
	// What of the body nobody read net/http reads, if it is little, or closes the
	// connection; it is never taken for a request. That must not take for ever either.
	q.raw.hurry()
	restart(r.Context())
	a.write()
}

// ended gives back what a request had, and tells of it. A request that panicked is cut
// off, and what it had is not used again.
func (f *Front) ended(a *answer, sc *scratch, began time.Time) {
	failure := recover()
	q := a.q
	switch failure {
	case nil, http.ErrAbortHandler:
		sc.ctx.ResetUserValues()
		sc.ctx.Request.Reset()
		sc.ctx.Response.Reset()
		f.scratch.Put(sc)
	default:
		a.status, q.code = 0, "Panic"
		f.o.Logger.Error().Interface("panic", failure).Bytes("stack", debug.Stack()).Str("method", q.http.Method).Msg("a request of S3 failed")
	}
	if f.o.Observe != nil {
		r := Request{
			Operation: q.http.Method, Bucket: q.bucket, Key: q.key, Access: q.access, Status: a.status, Code: q.code,
			Received: q.raw.n, Sent: a.sent, Began: began, Took: f.o.Clock.Now().Sub(began),
		}
		if q.op != nil {
			r.Operation = q.op.name
		}
		f.o.Observe(r)
	}
	if failure != nil {
		panic(http.ErrAbortHandler)
	}
}

// read finds out what a request is, and copies its head into fasthttp's form.
func (q *request) read(ops operations, sc *scratch) {
	r := q.http
	q.target, q.path, q.fault = parseTarget(r.RequestURI)
	if err := sc.fill(r); err != nil && q.fault == nil {
		q.fault = s3err.GetAPIError(s3err.ErrCannotParseHTTPRequest)
	}
	size := sc.wire.Len()
	if size > maxHeader && q.fault == nil {
		q.fault = s3err.GetRequestHeaderSectionTooLargeErr(maxHeader)
	}
	if r.ContentLength != 0 {
		q.raw.left = r.ContentLength
		sc.ctx.Request.SetBodyStream(q.raw, int(r.ContentLength))
	}
	q.op = ops.find(q.level(), r.Method, sc.ctx.Request.URI().QueryArgs(), r.Header)
	if q.fault != nil {
		// The names may be anything: they must not reach the router.
		q.target, q.path = target{}, "/"
	}
}

// fill writes the head of a request and has fasthttp read it: some of versitygw's
// middlewares look into the bytes that it read.
func (sc *scratch) fill(r *http.Request) error {
	remote := net.TCPAddrFromAddrPort(netip.AddrPort{})
	if at, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		remote = net.TCPAddrFromAddrPort(at)
	}
	sc.ctx.Init(&sc.empty, remote, quiet{})
	sc.ctx.Response.Header.SetNoDefaultContentType(true)
	w := &sc.wire
	w.Reset()
	uri := r.RequestURI
	if !strings.HasPrefix(uri, "/") || strings.HasPrefix(uri, "//") {
		uri = "/" // refused before: what it names doesn't matter
	}
	line := func(parts ...string) {
		for _, p := range parts {
			w.WriteString(p)
		}
		w.WriteString("\r\n")
	}
	line(r.Method, " ", uri, " HTTP/1.1")
	line("Host: ", r.Host)
	for name, values := range r.Header {
		for _, v := range values {
			line(name, ": ", v)
		}
	}
	line()
	sc.source.Reset(w.Bytes())
	sc.reader.Reset(&sc.source)
	return sc.ctx.Request.Header.Read(sc.reader)
}

// quiet drops what fasthttp would print: what it has to say is in its errors.
type quiet struct{}

func (quiet) Printf(string, ...any) {}

// answer hands what versitygw answered to net/http.
type answer struct {
	w      http.ResponseWriter
	q      *request
	ctx    *fasthttp.RequestCtx
	status int
	sent   int64
}

// write writes the answer. A body that fails in the middle cuts the connection, so that
// the client sees that it is not whole.
func (a *answer) write() {
	response := &a.ctx.Response
	defer func() { _ = response.CloseBodyStream() }()
	status := response.StatusCode()
	h := a.w.Header()
	for name, value := range response.Header.All() {
		switch name := string(name); http.CanonicalHeaderKey(name) {
		case "Connection", "Content-Length", "Date", "Server", "Transfer-Encoding":
		default:
			h[name] = append(h[name], string(value))
		}
	}
	for name, values := range a.q.more {
		h[name] = values
	}
	if status == http.StatusServiceUnavailable {
		h.Set("Retry-After", "1")
	}
	if len(h["Content-Type"]) == 0 {
		h["Content-Type"] = nil // net/http would guess one
	}
	stream := response.BodyStream()
	size := int64(response.Header.ContentLength())
	if stream == nil && a.q.http.Method != http.MethodHead {
		size = int64(len(response.Body()))
	}
	bare := status == http.StatusNotModified || status == http.StatusNoContent
	if size >= 0 && !bare && (a.q.http.Method != http.MethodHead || status < http.StatusBadRequest) {
		h.Set("Content-Length", strconv.FormatInt(size, 10))
	}
	a.w.WriteHeader(status)
	a.status = status
	var err error
	switch {
	case bare || a.q.http.Method == http.MethodHead:
	case stream == nil:
		var n int
		n, err = a.w.Write(response.Body())
		a.sent = int64(n)
	default:
		a.sent, err = io.Copy(a.w, stream)
		if err == nil && a.sent != size {
			err = io.ErrUnexpectedEOF
		}
	}
	if err != nil {
		a.status = 0
		a.q.code = codeOf(err)
		panic(http.ErrAbortHandler)
	}
}

// codeOf is what a failure in the middle of an answer is called.
func codeOf(err error) string {
	var s3 s3err.S3Error
	if errors.As(err, &s3) {
		return s3.BaseError().Code
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return tooSlow
	}
	return "Cut"
}
