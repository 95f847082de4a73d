package upstream

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// maxInterim is how many 1xx answers may come before the answer.
const maxInterim = 16

// readHead reads the head of the answer into resp; 1xx answers before it go to
// the trace of the context, if there is one. began is called at the first byte.
func (c *conn) readHead(ctx context.Context, limit int64, resp *http.Response, began func()) error {
	c.headLeft = max(limit-int64(c.r.Buffered()), 0)
	defer func() { c.headLeft = -1 }()
	if _, err := c.r.Peek(1); err != nil {
		return err
	}
	began()
	for range maxInterim {
		if err := c.parseHead(resp); err != nil {
			return err
		}
		if resp.StatusCode/100 != 1 {
			return nil
		}
		if resp.StatusCode == http.StatusSwitchingProtocols {
			return fmt.Errorf("%w: 101 that was not asked for", ErrMalformed)
		}
		if t := httptrace.ContextClientTrace(ctx); t != nil && t.Got1xxResponse != nil {
			if err := t.Got1xxResponse(resp.StatusCode, textproto.MIMEHeader(resp.Header)); err != nil {
				return fmt.Errorf("%w: 1xx: %w", ErrMalformed, err)
			}
		}
	}
	return fmt.Errorf("%w: more than %d answers of 1xx", ErrMalformed, maxInterim)
}

// parseHead reads one head: the plain way if it is plain and in the buffer.
func (c *conn) parseHead(resp *http.Response) error {
	head, err := c.peekHead()
	if err == nil {
		if head != nil && parsePlain(head, resp) {
			_, err = c.r.Discard(len(head))
			return err
		}
		err = parseAny(c.r, resp)
	}
	switch {
	case err == nil, errors.Is(err, ErrMalformed):
		return err
	case errors.Is(err, errHeadTooLong):
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	case errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF
	}
	var bad textproto.ProtocolError
	if errors.As(err, &bad) {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return err
}

// peekHead returns the bytes of a head up to the empty line, or nil if they are
// more than the buffer holds.
func (c *conn) peekHead() ([]byte, error) {
	searched := 0
	for {
		b, _ := c.r.Peek(c.r.Buffered()) // never fails
		if end := endOfHead(b, searched); end > 0 {
			return b[:end], nil
		}
		if len(b) == c.r.Size() {
			return nil, nil
		}
		searched = max(len(b)-2, 0)
		if _, err := c.r.Peek(len(b) + 1); err != nil {
			return nil, err
		}
	}
}

// endOfHead returns the length of the head with its empty line, 0 if that isn't
// there yet. Lines may end with a mere line feed. It searches from a place on that
// lies before the last line feed of an end, if it isn't 0.
func endOfHead(b []byte, from int) int {
	for i := from; ; {
		n := bytes.IndexByte(b[i:], '\n')
		if n < 0 {
			return 0
		}
		i += n + 1
		if i < len(b) && b[i] == '\n' {
			return i + 1
		}
		if i+1 < len(b) && b[i] == '\r' && b[i+1] == '\n' {
			return i + 2
		}
	}
}

// parsePlain parses a head in the shape that servers send: HTTP/1.1, three
// digits, lines that end with CR LF, valid names and values, none folded. It
// reports false for any other, which parseAny then judges.
func parsePlain(head []byte, resp *http.Response) bool {
	s := string(head) // all names and values are cut out of this one string
	line, s, ok := strings.Cut(s, "\r\n")
	if !ok || len(line) < len("HTTP/1.1 200") || line[:9] != "HTTP/1.1 " || len(line) > 12 && line[12] != ' ' {
		return false
	}
	code := 0
	for _, d := range []byte(line[9:12]) {
		if d < '0' || d > '9' {
			return false
		}
		code = 10*code + int(d-'0')
	}
	if code < 100 || !httpguts.ValidHeaderFieldValue(line[9:]) {
		return false
	}
	lines := strings.Count(s, "\n") - 1 // the last one is empty
	header := make(http.Header, max(lines, 0))
	values := make([]string, max(lines, 0))
	for {
		end := strings.IndexByte(s, '\n')
		if end < 1 || s[end-1] != '\r' {
			return false
		}
		field := s[:end-1]
		if s = s[end+1:]; field == "" {
			break
		}
		colon := strings.IndexByte(field, ':')
		if colon < 1 || len(values) == 0 || !httpguts.ValidHeaderFieldName(field[:colon]) {
			return false
		}
		value := trim(field[colon+1:])
		if !httpguts.ValidHeaderFieldValue(value) {
			return false
		}
		name := textproto.CanonicalMIMEHeaderKey(field[:colon])
		if have := header[name]; have != nil {
			header[name] = append(have, value)
			continue
		}
		values[0] = value
		header[name] = values[:1:1]
		values = values[1:]
	}
	if s != "" {
		return false // an end of mere line feeds was before this one
	}
	setStatus(resp, 1, 1, code, line[9:])
	resp.Header = header
	return true
}

// trim takes spaces and tabs off both ends, and nothing else.
func trim(s string) string {
	for s != "" && (s[0] == ' ' || s[0] == '\t') {
		s = s[1:]
	}
	for s != "" && (s[len(s)-1] == ' ' || s[len(s)-1] == '\t') {
		s = s[:len(s)-1]
	}
	return s
}

func setStatus(resp *http.Response, major, minor, code int, status string) {
	resp.Status, resp.StatusCode = status, code
	resp.ProtoMajor, resp.ProtoMinor = major, minor
	resp.Proto = "HTTP/1.1"
	if minor == 0 {
		resp.Proto = "HTTP/1.0"
	}
}

// parseAny parses what net/textproto takes for a head, with what it lets pass
// but must not go through a proxy refused.
func parseAny(r *bufio.Reader, resp *http.Response) error {
	tp := textproto.NewReader(r)
	line, err := tp.ReadLine()
	if err != nil {
		return err
	}
	proto, status, ok := strings.Cut(line, " ")
	major, minor, known := http.ParseHTTPVersion(proto)
	if !ok || !known || major != 1 {
		return fmt.Errorf("%w: status line %.40q", ErrMalformed, line)
	}
	status = strings.TrimLeft(status, " ")
	digits, _, _ := strings.Cut(status, " ")
	code, err := strconv.ParseUint(digits, 10, 16)
	if err != nil || len(digits) != 3 || code < 100 || !httpguts.ValidHeaderFieldValue(status) {
		return fmt.Errorf("%w: status line %.40q", ErrMalformed, line)
	}
	header, err := tp.ReadMIMEHeader()
	if err != nil {
		return err
	}
	for name := range header {
		if !httpguts.ValidHeaderFieldName(name) {
			return fmt.Errorf("%w: header %.40q", ErrMalformed, name)
		}
	}
	setStatus(resp, major, minor, int(code), status)
	resp.Header = http.Header(header)
	return nil
}
