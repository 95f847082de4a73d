package upstream

import (
	"fmt"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// framing is where the body of an answer ends.
type framing int

const (
	noBody  framing = iota
	length          // after Content-Length bytes
	chunks          // after the last chunk and the trailer
	closing         // with the connection
)

// frame finds out where the body of an answer to a method ends (RFC 9112 §6.3),
// and sets the fields of resp that follow from that as net/http does. keep is
// whether the connection can be used again afterwards.
func frame(resp *http.Response, method string) (f framing, keep bool, err error) {
	h := resp.Header
	keep = persists(resp)
	codings, lengths := h["Transfer-Encoding"], h["Content-Length"]
	switch {
	case len(codings) > 0 && len(lengths) > 0:
		return 0, false, fmt.Errorf("%w: both Content-Length and Transfer-Encoding", ErrMalformed)
	case len(codings) > 0:
		if len(codings) > 1 || !strings.EqualFold(codings[0], "chunked") {
			return 0, false, fmt.Errorf("%w: Transfer-Encoding %.40q", ErrMalformed, codings)
		}
		if resp.ProtoMinor == 0 {
			return 0, false, fmt.Errorf("%w: Transfer-Encoding of HTTP/1.0", ErrMalformed)
		}
		delete(h, "Transfer-Encoding")
		if err := announced(resp); err != nil {
			return 0, false, err
		}
		resp.TransferEncoding, resp.ContentLength, f = []string{"chunked"}, -1, chunks
	case len(lengths) > 0:
		if resp.ContentLength, err = parseLength(lengths); err != nil {
			return 0, false, err
		}
		if len(lengths) > 1 {
			h["Content-Length"] = lengths[:1]
		}
		f = length
		if resp.ContentLength == 0 {
			f = noBody
		}
	default:
		resp.ContentLength, f = -1, closing
	}
	switch {
	case method == http.MethodHead:
		f = noBody
	case resp.StatusCode == http.StatusNoContent || resp.StatusCode == http.StatusNotModified:
		// Without a body whatever the headers say.
		resp.ContentLength, f = 0, noBody
	case f == closing:
		keep = false
	}
	resp.Close = !keep
	return f, keep, nil
}

// persists reports whether the connection can be used again (RFC 9112 §9.3).
func persists(resp *http.Response) bool {
	connection := resp.Header["Connection"]
	if len(connection) == 0 {
		return resp.ProtoMinor >= 1
	}
	if httpguts.HeaderValuesContainsToken(connection, "close") {
		return false
	}
	return resp.ProtoMinor >= 1 || httpguts.HeaderValuesContainsToken(connection, "keep-alive")
}

// announced moves the names of the trailer of chunks from the header to where
// net/http has them.
func announced(resp *http.Response) error {
	names, ok := resp.Header["Trailer"]
	if !ok {
		return nil
	}
	delete(resp.Header, "Trailer")
	for _, list := range names {
		for name := range strings.SplitSeq(list, ",") {
			name = textproto.CanonicalMIMEHeaderKey(strings.Trim(name, " \t"))
			switch {
			case name == "":
				continue
			case ofConnection(name) || !httpguts.ValidHeaderFieldName(name):
				return fmt.Errorf("%w: Trailer %.40q", ErrMalformed, name)
			}
			if resp.Trailer == nil {
				resp.Trailer = http.Header{}
			}
			resp.Trailer[name] = nil
		}
	}
	return nil
}

// parseLength reads Content-Length headers, which may repeat one another.
func parseLength(lengths []string) (int64, error) {
	for _, l := range lengths[1:] {
		if l != lengths[0] {
			return 0, fmt.Errorf("%w: Content-Length %.40q and %.40q", ErrMalformed, lengths[0], l)
		}
	}
	for _, d := range []byte(lengths[0]) {
		if d < '0' || d > '9' {
			return 0, fmt.Errorf("%w: Content-Length %.40q", ErrMalformed, lengths[0])
		}
	}
	n, err := strconv.ParseInt(lengths[0], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: Content-Length %.40q", ErrMalformed, lengths[0])
	}
	return n, nil
}
