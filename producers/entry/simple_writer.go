package entry

import (
	"bufio"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"

	"penstock/infra/clock"
)

// simpleWriter writes the answer to a request of HTTP/1.1 that has no body. It is
// an http.ResponseWriter and http.Flusher.
type simpleWriter struct {
	out      *bufio.Writer
	request  *http.Request
	draining *atomic.Bool
	header   http.Header
	begun    bool  // the head is written
	bodiless bool  // by method or status
	chunked  bool  // the body ends with a chunk of length 0
	left     int64 // of a body of known length
	last     bool  // the connection ends after this answer
	number   [24]byte
}

func (w *simpleWriter) begin(r *http.Request, draining *atomic.Bool) {
	clear(w.header)
	*w = simpleWriter{out: w.out, header: w.header, request: r, draining: draining}
}

// Header implements http.ResponseWriter.
func (w *simpleWriter) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter. A status of 1xx goes out at once
// and is followed by others.
func (w *simpleWriter) WriteHeader(status int) {
	if w.begun {
		return
	}
	if status < 200 {
		w.status(status)
		_ = w.header.WriteSubset(w.out, ofFraming) // the writer keeps its first error
		_, _ = w.out.WriteString("\r\n")
		_ = w.out.Flush()
		return
	}
	w.begun = true
	w.status(status)
	w.frame(status)
	_ = w.header.WriteSubset(w.out, ofAnswer)
	if len(w.header["Date"]) == 0 {
		_, _ = w.out.WriteString("Date: ")
		_, _ = w.out.Write(clock.System().Now().UTC().AppendFormat(w.out.AvailableBuffer(), http.TimeFormat))
		_, _ = w.out.WriteString("\r\n")
	}
	if w.last {
		_, _ = w.out.WriteString("Connection: close\r\n")
	}
	_, _ = w.out.WriteString("\r\n")
}

// ofFraming are the fields that an answer of 1xx doesn't have, ofAnswer those that
// frame writes.
var (
	ofFraming = map[string]bool{"Content-Length": true, "Transfer-Encoding": true, "Connection": true, "Trailer": true}
	ofAnswer  = map[string]bool{"Content-Length": true, "Transfer-Encoding": true, "Connection": true}
)

func (w *simpleWriter) status(status int) {
	_, _ = w.out.WriteString("HTTP/1.1 ")
	_, _ = w.out.Write(strconv.AppendInt(w.number[:0], int64(status), 10))
	_ = w.out.WriteByte(' ')
	_, _ = w.out.WriteString(http.StatusText(status))
	_, _ = w.out.WriteString("\r\n")
}

// frame decides where the body ends, and writes that.
func (w *simpleWriter) frame(status int) {
	w.last = w.request.Close || w.draining.Load() || hasWord(w.header["Connection"], "close")
	w.bodiless = w.request.Method == http.MethodHead || status == http.StatusNoContent || status == http.StatusNotModified
	if lengths := w.header["Content-Length"]; len(lengths) == 1 && status != http.StatusNoContent {
		if n, err := strconv.ParseUint(lengths[0], 10, 63); err == nil {
			w.left = int64(n)
			_, _ = w.out.WriteString("Content-Length: ")
			_, _ = w.out.Write(strconv.AppendUint(w.number[:0], n, 10))
			_, _ = w.out.WriteString("\r\n")
			return
		}
	}
	if w.bodiless {
		return
	}
	w.chunked = true
	_, _ = w.out.WriteString("Transfer-Encoding: chunked\r\n")
}

func hasWord(lines []string, word string) bool {
	for _, line := range lines {
		for w := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(w), word) {
				return true
			}
		}
	}
	return false
}

// Write implements io.Writer.
func (w *simpleWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	switch {
	case len(p) == 0:
		return 0, nil
	case w.bodiless:
		return 0, http.ErrBodyNotAllowed
	case !w.chunked:
		if int64(len(p)) > w.left {
			return 0, http.ErrContentLength
		}
		w.left -= int64(len(p))
		return w.out.Write(p)
	}
	_, _ = w.out.Write(strconv.AppendUint(w.number[:0], uint64(len(p)), 16))
	_, _ = w.out.WriteString("\r\n")
	n, err := w.out.Write(p)
	if err == nil {
		_, err = w.out.WriteString("\r\n")
	}
	return n, err
}

// Flush implements http.Flusher.
func (w *simpleWriter) Flush() {
	w.WriteHeader(http.StatusOK)
	_ = w.out.Flush()
}

// end writes what ends the answer; false if it is not whole, or could not be
// written.
func (w *simpleWriter) end() bool {
	w.WriteHeader(http.StatusOK)
	if w.chunked {
		_, _ = w.out.WriteString("0\r\n")
		w.trailers()
		_, _ = w.out.WriteString("\r\n")
	}
	err := w.out.Flush()
	return err == nil && (w.bodiless || w.left == 0)
}

func (w *simpleWriter) trailers() {
	var trailer http.Header
	for name, values := range w.header {
		if bare, ok := strings.CutPrefix(name, http.TrailerPrefix); ok {
			if trailer == nil {
				trailer = http.Header{}
			}
			trailer[bare] = values
		}
	}
	if trailer != nil {
		_ = trailer.Write(w.out)
	}
}

var _ interface {
	http.ResponseWriter
	http.Flusher
	io.Writer
} = (*simpleWriter)(nil)
