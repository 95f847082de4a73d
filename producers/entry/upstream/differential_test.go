package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/net/http/httpguts"
	"pgregory.net/rapid"

	"penstock/infra/clock"
)

// theirs has net/http's transport read an answer.
func theirs(t testing.TB, method string, answer []byte, most int) said {
	t.Helper()
	tr := &http.Transport{
		DisableCompression: true, DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return newMemConn(answer, most), nil },
	}
	defer tr.CloseIdleConnections()
	resp, err := tr.RoundTrip(newRequest(t, method, "/", ""))
	if err != nil {
		return said{err: err}
	}
	b, bodyErr := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	return said{status: resp.StatusCode, header: resp.Header, trailer: resp.Trailer, body: string(b), bodyErr: bodyErr}
}

// stricter are the answers that we refuse and net/http may take, each of which
// could mean one thing to us and another to who stands behind us.
var stricter = []*regexp.Regexp{
	regexp.MustCompile(`(?i)\nTransfer-Encoding:`),   // beside a length, twice, or in HTTP/1.0
	regexp.MustCompile(`\n[^:\r\n]*[ \t][^:\r\n]*:`), // space in a name
	regexp.MustCompile(`(^|\n)HTTP/[02-9]`),          // versions of other protocols
	regexp.MustCompile(`(^|\n)HTTP/1\.[0-9] +101`),   // nobody asked
	regexp.MustCompile(`(?i)\nTrailer:|\n0+\r?\n`),   // fields about the connection in a trailer
	regexp.MustCompile(`(^|\n)HTTP/1\.[0-9] +[0-9]{3} [^\r\n]*[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\r]`),
	regexp.MustCompile(`(?s)(HTTP/1\.[0-9] +1.*){16}`),
	regexp.MustCompile(`(^|\n)HTTP/1\.[0-9] +[-+0]`), // a status of other than three digits
}

// compare has both read an answer and reports in what they differ.
func compare(t testing.TB, p *Pool, method string, answer []byte, most int) error {
	ours, their := inMemory(t, p, method, answer, most), theirs(t, method, answer, most)
	odd := func() bool {
		for _, r := range stricter {
			if r.Match(answer) {
				return true
			}
		}
		return false
	}
	switch {
	case ours.err != nil && (their.err != nil || errors.Is(ours.err, ErrMalformed) && odd()):
		return nil //nolint:nilerr // Both refuse it, or we do for a reason.
	case ours.err != nil:
		return fmt.Errorf("we refuse (%w), they take %+v", ours.err, their)
	case their.err != nil:
		return fmt.Errorf("we take %+v, they refuse (%w)", ours, their.err)
	case ours.bodyErr != nil && their.bodyErr == nil && errors.Is(ours.bodyErr, ErrMalformed) && odd():
		return nil
	case (ours.bodyErr == nil) != (their.bodyErr == nil):
		return fmt.Errorf("body: our error %w, theirs %w", ours.bodyErr, their.bodyErr)
	case ours.status != their.status || ours.body != their.body:
		return fmt.Errorf("we have %d %.200q, they %d %.200q", ours.status, ours.body, their.status, their.body)
	}
	// net/http adds Cache-Control where there is Pragma: no-cache, and may take off
	// Connection: close.
	if _, ok := ours.header["Cache-Control"]; !ok && ours.header.Get("Pragma") == "no-cache" {
		delete(their.header, "Cache-Control")
	}
	if httpguts.HeaderValuesContainsToken(ours.header["Connection"], "close") {
		delete(ours.header, "Connection")
		delete(their.header, "Connection")
	}
	if !reflect.DeepEqual(ours.header, their.header) {
		return fmt.Errorf("we have header %v, they %v", ours.header, their.header)
	}
	if ours.bodyErr == nil && len(ours.trailer)+len(their.trailer) > 0 && !reflect.DeepEqual(ours.trailer, their.trailer) {
		return fmt.Errorf("we have trailer %v, they %v", ours.trailer, their.trailer)
	}
	return nil
}

// TestWeReadWhatNetHTTPReads: of random answers, well formed and not, however
// they are cut into packets, we take what net/http takes, and the same of it, or
// refuse it for one of the reasons above. What net/http refuses we refuse.
func TestWeReadWhatNetHTTPReads(t *testing.T) {
	t.Parallel()
	p := newPool(t, Options{Retry: Retry{Attempts: 1}, Health: Health{Failures: -1}}, "http://127.0.0.1:1")
	rapid.Check(t, func(rt *rapid.T) {
		method := rapid.SampledFrom([]string{"GET", "GET", "GET", "HEAD", "POST"}).Draw(rt, "method")
		answer := []byte(drawAnswer(rt))
		most := rapid.SampledFrom([]int{1, 7, 100, 5000, 100_000}).Draw(rt, "most")
		if err := compare(t, p, method, answer, most); err != nil {
			rt.Fatalf("%s %q: %v", method, answer, err)
		}
	})
}

func drawAnswer(rt *rapid.T) string {
	var b strings.Builder
	for range rapid.SampledFrom([]int{0, 0, 0, 0, 1, 2, 20}).Draw(rt, "interim") {
		b.WriteString(rapid.SampledFrom([]string{"HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 103 Early\r\nLink: x\r\n\r\n"}).Draw(rt, "1xx"))
	}
	pick := func(name string, usual string, odd ...string) string {
		return rapid.SampledFrom(append([]string{usual, usual, usual, usual, usual, usual}, odd...)).Draw(rt, name)
	}
	end := func() string { return pick("end", "\r\n", "\n", "\r\r\n", "\r\n ") }
	b.WriteString(pick("proto", "HTTP/1.1", "HTTP/1.0", "HTTP/2.0", "HTTP/1.10", "http/1.1", " HTTP/1.1", "") +
		pick("sp", " ", "  ", "", "\t") +
		pick("code", "200", "204", "304", "404", "500", "101", "20", "2000", "+20", "099", "999", "abc") +
		pick("reason", " OK", "", " ", " Not Found", " \xff", " a\x01") + end())
	body := rapid.SampledFrom([]string{"", "ok", "hello world", strings.Repeat("y", 5000)}).Draw(rt, "body")
	var headers []string
	framing := rapid.IntRange(0, 5).Draw(rt, "framing")
	wire := body
	switch framing {
	case 0, 1:
		headers = append(headers, fmt.Sprintf("Content-Length: %d", len(body)))
	case 2, 3:
		headers = append(headers, "Transfer-Encoding: chunked")
		wire = drawChunks(rt, body, pick)
	case 4:
		headers = append(headers, pick("odd length", "Content-Length: 2", "Content-Length: 2, 2", "Content-Length: -1", "Content-Length: +2", "Content-Length: 0x2", "Content-Length: ", "Content-Length: 1e1"))
	}
	others := []string{
		"Server: nginx", "Set-Cookie: a=b; Path=/", "Set-Cookie: c=d", "date: Mon, 30 Nov 2026 09:00:00 GMT", "X-Empty:", "X-Tab:\tv\t",
		"Connection: close", "Connection: keep-alive", "Pragma: no-cache", "Cache-Control: private", "ETag: \"x\"", "X-Bytes: \xc3\xa9\xff",
		"Content-Length: 2", "Transfer-Encoding: chunked", "Transfer-Encoding: gzip", "Trailer: X-T", "Trailer: Content-Length", "Content-Encoding: gzip",
		"No colon", ": no name", "Sp ace: x", "X-Sp : x", "X-Ctl: a\x01b", "X-NUL: \x00", "X-CR: a\rb", "\x80: x", "X-Long: " + strings.Repeat("z", 5000),
	}
	for range rapid.IntRange(0, 6).Draw(rt, "headers") {
		i := rapid.IntRange(0, len(others)+11).Draw(rt, "header")
		if i >= len(others) {
			i %= 12 // the ordinary ones more often
		}
		headers = append(headers, others[i])
	}
	for _, h := range rapid.Permutation(headers).Draw(rt, "order") {
		b.WriteString(h + end())
	}
	b.WriteString(pick("blank", "\r\n", "\n", "") + wire)
	s := b.String()
	if rapid.IntRange(0, 9).Draw(rt, "cut?") == 0 {
		s = s[:rapid.IntRange(0, len(s)).Draw(rt, "cut")]
	}
	if len(s) > 0 && rapid.IntRange(0, 9).Draw(rt, "flip?") == 0 {
		i := rapid.IntRange(0, len(s)-1).Draw(rt, "flip")
		s = s[:i] + string([]byte{rapid.Byte().Draw(rt, "byte")}) + s[i+1:]
	}
	return s
}

func drawChunks(rt *rapid.T, body string, pick func(string, string, ...string) string) string {
	var b strings.Builder
	for rest := body; rest != ""; {
		n := rapid.IntRange(1, len(rest)).Draw(rt, "chunk")
		b.WriteString(fmt.Sprintf("%x", n) + pick("extension", "", ";a=b", ";", " ", "\t") + pick("chunk line", "\r\n", "\n") +
			rest[:n] + pick("chunk end", "\r\n", "\n", "x"))
		rest = rest[n:]
	}
	return b.String() + pick("last", "0\r\n", "00\r\n", "0;a\r\n", "") +
		pick("trailer", "", "X-T: t\r\n", "X-T: t\r\nX-U: u\r\n", "Content-Length: 3\r\n", "bad\r\n") + pick("final", "\r\n", "\n", "")
}

// FuzzAnswer compares what any bytes are to us and to net/http.
func FuzzAnswer(f *testing.F) {
	for _, s := range []string{
		okAnswer, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n2\r\nok\r\n0\r\nX: y\r\n\r\n",
		"HTTP/1.0 200 OK\n\nbody", "HTTP/1.1 103 E\r\nLink: x\r\n\r\nHTTP/1.1 304 N\r\nContent-Length: 3\r\n\r\n",
		"HTTP/1.1 200 OK\r\nA: b\r\n c\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx",
	} {
		f.Add([]byte(s), false, 100)
	}
	p := newPool(f, Options{Retry: Retry{Attempts: 1}, Health: Health{Failures: -1}}, "http://127.0.0.1:1")
	f.Fuzz(func(t *testing.T, answer []byte, head bool, most int) {
		if len(answer) > 60<<10 { // limits of heads are counted differently
			return
		}
		method := "GET"
		if head {
			method = "HEAD"
		}
		if err := compare(t, p, method, answer, most); err != nil {
			t.Errorf("%s %q: %v", method, answer, err)
		}
	})
}

// TestPlainHeadsAreReadTheSame: what the short way through a head makes of it is
// what net/textproto makes of it.
func TestPlainHeadsAreReadTheSame(t *testing.T) {
	t.Parallel()
	plain := 0
	rapid.Check(t, func(rt *rapid.T) {
		head := drawAnswer(rt)
		if end := endOfHead([]byte(head), 0); end > 0 {
			head = head[:end]
		}
		var short, long http.Response
		if !parsePlain([]byte(head), &short) {
			return
		}
		plain++
		c := newConn(newMemConn(nil, 1), nil, clock.System())
		c.r.Reset(bytes.NewReader([]byte(head)))
		if err := parseAny(c.r, &long); err != nil || !reflect.DeepEqual(short, long) || c.r.Buffered() != 0 {
			rt.Fatalf("%q: %+v, %+v, %v", head, short, long, err)
		}
	})
	if plain < 5 {
		t.Errorf("only %d heads were plain", plain)
	}
}
