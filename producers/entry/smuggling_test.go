package entry_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// attack is what a client sends on one connection. seen is how many requests the
// backend gets of it; status is the answer to the last of them, or the refusal.
type attack struct {
	name, raw string
	status    int
	seen      int
}

const host = "Host: x.example\r\n"

// post makes a request with these headers and this body.
func post(headers, body string) string {
	return "POST /p HTTP/1.1\r\n" + host + headers + "\r\n" + body
}

func getWith(headers string) string { return "GET /p HTTP/1.1\r\n" + host + headers + "\r\n" }

const (
	smuggled = "GET /smuggled HTTP/1.1\r\nHost: x.example\r\n\r\n"
	chunked  = "Transfer-Encoding: chunked\r\n"
	fiveByte = "5\r\nhello\r\n0\r\n\r\n"
)

// framingAttacks are those with two readings of where a body ends (CL.TE, TE.CL,
// TE.TE, CL.CL, CL.0).
func framingAttacks() []attack {
	list := []attack{
		{"CL.TE", post("Content-Length: 6\r\n"+chunked, "0\r\n\r\nG"), 400, 0},
		{"CL.TE with a request", post(fmt.Sprintf("Content-Length: %d\r\n", 5+len(smuggled))+chunked, "0\r\n\r\n"+smuggled), 400, 0},
		{"TE.CL", post(chunked+"Content-Length: 4\r\n", "5c\r\n"+smuggled), 400, 0},
		{"TE.CL equal", post("Content-Length: 15\r\n"+chunked, fiveByte), 400, 0},
		{"TE.0", post(chunked, "0\r\n\r\n"), 200, 1},
		{"chunks", post(chunked, fiveByte), 200, 1},
		{"chunks in capitals", post("TRANSFER-ENCODING: CHUNKED\r\n", fiveByte), 200, 1},
		{"chunks, tab before", post("Transfer-Encoding:\tchunked\r\n", fiveByte), 200, 1},
		{"chunks, spaces around", post("Transfer-Encoding:  chunked \t \r\n", fiveByte), 200, 1},
		{"chunks, no space", post("Transfer-Encoding:chunked\r\n", fiveByte), 200, 1},
		{"length", post("Content-Length: 5\r\n", "hello"), 200, 1},
		{"length with zeros", post("Content-Length: 005\r\n", "hello"), 200, 1},
		{"no length", post("", ""), 200, 1},
		{"GET with body", getWith("Content-Length: 5\r\n") + "hello", 200, 1},
		{"two lengths that differ", post("Content-Length: 5\r\nContent-Length: 6\r\n", "hello"), 400, 0},
		{"two lengths alike", post("Content-Length: 5\r\nContent-Length: 5\r\n", "hello"), 400, 0},
		{"a list of lengths", post("Content-Length: 5, 5\r\n", "hello"), 400, 0},
		{"underscored length", post("Content-Length: 5\r\nContent_Length: 6\r\n", "hello"), 400, 0},
		{"underscored coding", post("Transfer_Encoding: chunked\r\nContent-Length: 5\r\n", "hello"), 400, 0},
		{"HTTP/1.0 with chunks", "POST /p HTTP/1.0\r\n" + host + chunked + "\r\n" + fiveByte, 400, 0},
		{"HTTP/1.0 with both", "POST /p HTTP/1.0\r\n" + host + chunked + "Content-Length: 5\r\n\r\n" + fiveByte, 400, 0},
	}
	for _, v := range []string{
		"-5", "+5", "0x5", "5.0", "5e0", "", " ", "5 5", "5;", "five", "5\v", "5\x00", "99999999999999999999", "18446744073709551621",
		"9223372036854775808", "1_000", "５", "5,", ",5", "\"5\"",
	} {
		list = append(list, attack{fmt.Sprintf("length %q", v), post("Content-Length: "+v+"\r\n", "hello"), 400, 0})
	}
	for v, status := range map[string]int{
		"xchunked": 501, "chunked, identity": 400, "identity, chunked": 501, "identity": 501, "gzip": 501, "gzip, chunked": 501,
		"chunked, chunked": 400, "\vchunked": 400, "\x00chunked": 400, "chunked\x00": 400, "\"chunked\"": 400, "'chunked'": 501, "chunked;q=1": 400,
		"chunk\ted": 400, "chun\r\n ked": 400, "chunked\r\n , identity": 400, "\r\n chunked": 400, "\rchunked": 400,
		"chunked\r": 400, "": 400, ",chunked": 400, "chunked,": 400, "\u00a0chunked": 400, "\xffchunked": 400, "chunKed\x0b": 400, "x-chunked": 501,
		"ｃhunked": 400, "chunked\x7f": 400,
	} {
		list = append(list,
			attack{fmt.Sprintf("coding %q", v), post("Transfer-Encoding: "+v+"\r\n", fiveByte), status, 0},
			attack{fmt.Sprintf("coding %q beside a length", v), post("Transfer-Encoding: "+v+"\r\nContent-Length: 5\r\n", "hello"), 400, 0})
	}
	for _, h := range []string{
		"Transfer-Encoding : chunked", "Transfer-Encoding\t: chunked", " Transfer-Encoding: chunked", "\tTransfer-Encoding: chunked",
		"X: y\r\n Transfer-Encoding: chunked", "Transfer-Encoding\r\n: chunked", "Transfer\x00-Encoding: chunked", "Transfer-Encoding\x00: chunked",
		"X: y\nTransfer-Encoding: chunked", "X: y\rTransfer-Encoding: chunked", "X: y\r\r\nTransfer-Encoding: chunked", "Transfer-Encoding\v: chunked",
		"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked\r\nTransfer-encoding: cow",
		"Transfer-Encoding: cow\r\nTransfer-Encoding: chunked", "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked",
		"Transfer-Encoding", ": chunked", "Transfer Encoding: chunked", "Transfer-Encoding; chunked", "Träns: x", "Content-Length : 5", "Foo: bar\x00",
		"Foo: \x01", "Foo\x7f: x", "(Foo): x", "Foo[]: x",
	} {
		list = append(list, attack{fmt.Sprintf("header %q", h), post(h+"\r\n", fiveByte), 400, 0})
	}
	return list
}

// chunkAttacks have well-formed heads.
func chunkAttacks() []attack {
	list := []attack{
		{"extension", post(chunked, "5;a=b\r\nhello\r\n0;c\r\n\r\n"), 200, 1},
		{"extension quoted", post(chunked, "5;a=\"b c\"\r\nhello\r\n0\r\n\r\n"), 200, 1},
		{"size in capitals", post(chunked, "A\r\n0123456789\r\n0\r\n\r\n"), 200, 1},
		{"size with zeros", post(chunked, "0005\r\nhello\r\n0000\r\n\r\n"), 200, 1},
		{"trailer", post(chunked+"Trailer: X-Sum\r\n", "5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n"), 200, 1},
		{"trailer that nobody announced", post(chunked, "5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n"), 200, 1},
	}
	for _, body := range []string{
		"5\nhello\r\n0\r\n\r\n", "5\r\nhello\n0\r\n\r\n", "5\r\nhello\r\n0\n\r\n", "5\r\nhello\r\n0\r\n\n", "5\rhello\r\n0\r\n\r\n", "5\r\nhello0\r\n\r\n",
		"5\r\nhelloXX0\r\n\r\n", "5\r\nhello\rX0\r\n\r\n", "5\r\nhello\r\n\r\n0\r\n\r\n", "5 \r\nhello\r\n0\r\n\r\n", " 5\r\nhello\r\n0\r\n\r\n", "5\t;a\r\nhello\r\n0\r\n\r\n",
		"0x5\r\nhello\r\n0\r\n\r\n", "+5\r\nhello\r\n0\r\n\r\n", "-5\r\nhello\r\n0\r\n\r\n", "g\r\nhello\r\n0\r\n\r\n", "\r\nhello\r\n0\r\n\r\n", ";a\r\nhello\r\n0\r\n\r\n",
		"5;a\nhello\r\n0\r\n\r\n", "5;a\rb\r\nhello\r\n0\r\n\r\n", "5;a\x00\r\nhello\r\n0\r\n\r\n", "5;" + strings.Repeat("a", 300) + "\r\nhello\r\n0\r\n\r\n",
		"ffffffffffffffff\r\nhello", "10000000000000005\r\nhello\r\n0\r\n\r\n", "00000000000000000000005\r\nhello\r\n0\r\n\r\n", "5_0\r\nhello\r\n0\r\n\r\n",
		"5\r\nhello\r\n0\r\nX : 1\r\n\r\n", "5\r\nhello\r\n0\r\n X: 1\r\n\r\n", "5\r\nhello\r\n0\r\nX: 1\n\r\n", "5\r\nhello\r\n0\r\nX: \x00\r\n\r\n", "5\r\nhello\r\n0\r\nX\r\n\r\n",
		"5\r\nhello\r\n0\r\nContent-Length: 5\r\n\r\n", "5\r\nhello\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n", "5\r\nhello\r\n0\r\nHost: evil\r\n\r\n",
		"5\r\nhello\r\n0\r\nPenstock-User: root\r\n\r\n", "5\r\nhello\r\n0\r\nX: 1\rY: 2\r\n\r\n", "\x00", "5\x00\r\nhello\r\n0\r\n\r\n",
	} {
		name := body
		if len(name) > 60 {
			name = name[:60]
		}
		// The strict backend gets nothing: a small body is read before a server is
		// asked, and one in chunks ends without its last.
		list = append(list, attack{fmt.Sprintf("chunks %q", name), post(chunked, body), 400, -1})
	}
	return list
}

// lineAttacks are about request lines, targets, hosts and methods.
func lineAttacks() []attack {
	list := []attack{
		{"plain", getWith(""), 200, 1},
		{"HEAD", "HEAD /p HTTP/1.1\r\n" + host + "\r\n", 200, 1},
		{"HTTP/1.0", "GET /p HTTP/1.0\r\n" + host + "\r\n", 200, 1},
		{"an empty line before", "\r\n" + getWith(""), 200, 1},
		{"OPTIONS *", "OPTIONS * HTTP/1.1\r\n" + host + "\r\n", 200, 1},
		{"absolute", "GET http://x.example/p HTTP/1.1\r\n" + host + "\r\n", 200, 1},
		{"absolute without path", "GET http://x.example HTTP/1.1\r\n" + host + "\r\n", 200, 1},
		{"absolute with query", "GET http://x.example?q HTTP/1.1\r\n" + host + "\r\n", 200, 1},
		{"absolute, other case", "GET HTTP://X.Example/p HTTP/1.1\r\n" + host + "\r\n", 200, 1},
		{"host with port", "GET /p HTTP/1.1\r\nHost: x.example:80\r\n\r\n", 200, 1},
		{"host of IPv6", "GET /p HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", 200, 1},
		{"two slashes", "GET //evil/p HTTP/1.1\r\n" + host + "\r\n", 200, 1},
		{"made-up method", "M-SEARCH /p HTTP/1.1\r\n" + host + "\r\n", 200, 1},
		{"obs-text", getWith("X: \xe4\r\n"), 200, 1},
		{"CONNECT", "CONNECT x.example:443 HTTP/1.1\r\n" + host + "\r\n", 405, 0},
		{"TRACE", "TRACE /p HTTP/1.1\r\n" + host + "\r\n", 405, 0},
		{"method in small letters", "get /p HTTP/1.1\r\n" + host + "\r\n", 501, 0},
		{"long method", strings.Repeat("A", 40) + " /p HTTP/1.1\r\n" + host + "\r\n", 501, 0},
		{"method with !", "G!T /p HTTP/1.1\r\n" + host + "\r\n", 501, 0},
		{"HTTP/2.0", "GET /p HTTP/2.0\r\n" + host + "\r\n", 505, 0},
		{"HTTP/1.2", "GET /p HTTP/1.2\r\n" + host + "\r\n", 505, 0},
		{"preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, 0},
		{"HTTP/1.0 without Host", "GET /p HTTP/1.0\r\n\r\n", 200, 1},
		{"long URI", "GET /" + strings.Repeat("a", 33<<10) + " HTTP/1.1\r\n" + host + "\r\n", 414, 0},
		{"large header", getWith("X: " + strings.Repeat("a", 33<<10) + "\r\n"), 431, 0},
		{"many headers", getWith(strings.Repeat("X: y\r\n", 6000)), 431, 0},
		{"expectation", getWith("Expect: 200-ok\r\n"), 417, 0},
	}
	for _, line := range []string{
		"GET /p", "GET /p\r\n", "GET", "GET  /p HTTP/1.1", "GET /p  HTTP/1.1", "GET\t/p HTTP/1.1", "GET /p\tHTTP/1.1", "GET /p HTTP/1.1 ", " GET /p HTTP/1.1",
		"GET /p HTTP/1.1\r", "GET /p http/1.1", "GET /p HTTP/1", "GET /p HTTP/01.1", "GET /p HTTP/1.10", "GET /p HTTP/+1.1", "GET /p XTTP/1.1", "GET /a b HTTP/1.1",
		"GET /p HTTP/1.1 HTTP/1.0", "GET p HTTP/1.1", "GET x.example/p HTTP/1.1", "GET * HTTP/1.1", "GET /p\x00 HTTP/1.1", "GET /p\x01 HTTP/1.1", "GET /p\x7f HTTP/1.1", "GET /\xe4 HTTP/1.1",
		"GET /p#f HTTP/1.1", "GET /%zz HTTP/1.1", "GET /% HTTP/1.1", "GET /%4 HTTP/1.1", "G\x00T /p HTTP/1.1", "G(T /p HTTP/1.1", "\x00GET /p HTTP/1.1", "GET ftp://x.example/ HTTP/1.1",
		"GET http:/x.example/ HTTP/1.1", "GET http:///p HTTP/1.1", "GET http://evil/p HTTP/1.1", "GET http://u@x.example/p HTTP/1.1", "GET http://u:p@x.example/p HTTP/1.1",
		"GET http://x.example:99999/p HTTP/1.1", "GET http://x.example:/p HTTP/1.1", "GET http://x.example\\@evil/p HTTP/1.1", "GET javascript:alert(1) HTTP/1.1", "GET \r/p HTTP/1.1", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
		"\nGET /p HTTP/1.1", "GET /p HTTP/1.1\nX: y",
	} {
		list = append(list, attack{fmt.Sprintf("line %q", line), line + "\r\n" + host + "\r\n", 400, 0})
	}
	for _, h := range []string{
		"", "Host:\r\n", "Host: \r\n", "Host: a\r\nHost: b\r\n", "Host: x.example\r\nHost: x.example\r\n", "Host: a b\r\n", "Host: u@x.example\r\n", "Host: x.example/p\r\n", "Host: x.example?q\r\n",
		"Host: x.example#f\r\n", "Host: x.example:http\r\n", "Host: x.example:-1\r\n", "Host: x.example:123456\r\n", "Host: [::1\r\n", "Host: []\r\n", "Host: [::1]x\r\n", "Host: [g::1]\r\n", "Host: a,b\r\n",
		"Host: x.example\r\nhost: y\r\n", "Host : x.example\r\n", "Host: \x00\r\n", "Host: " + strings.Repeat("a", 300) + "\r\n", "Host: <script>\r\n", "Host: x.example\\evil\r\n", "Host: ä\r\n",
	} {
		list = append(list, attack{fmt.Sprintf("host %.40q", h), "GET /p HTTP/1.1\r\n" + h + "\r\n", 400, 0})
	}
	for _, v := range []string{
		"Host", "close, Content-Length", "Transfer-Encoding", "X-Owner", "x_owner", "Authorization", "Cookie", "X-Forwarded-For", "X-Forwarded-Whatever", "Penstock-Hop", "Forwarded", "Traceparent", "a b", "X-User, keep-alive", "(",
	} {
		list = append(list, attack{fmt.Sprintf("connection %q", v), getWith("Connection: " + v + "\r\n"), 400, 0})
	}
	return list
}

// TestSmuggling sends the corpus. Whatever a client sends, the backend reads
// well-formed requests only, as many as there are answers, and the connections
// that others use carry no rest of it.
func TestSmuggling(t *testing.T) {
	t.Parallel()
	backend := newStrictBackend(t)
	p := run(t, []string{backend.url}, nil)
	corpus := append(append(framingAttacks(), chunkAttacks()...), lineAttacks()...)
	if len(corpus) < 250 {
		t.Errorf("%d attacks", len(corpus))
	}
	probes := 0
	probe := func(w *wire) string {
		probes++
		path := fmt.Sprintf("/probe-%d", probes)
		w.send(t, "GET "+path+" HTTP/1.1\r\nHost: x.example\r\n\r\n")
		a := w.next(t, "GET")
		if a == nil {
			return "no answer"
		}
		if want := "GET " + path + " HTTP/1.1"; a.StatusCode != http.StatusOK || a.body != want {
			return fmt.Sprintf("%d %q", a.StatusCode, a.body)
		}
		return ""
	}
	for _, a := range corpus {
		before := len(backend.since(0))
		w := dial(t, p)
		go func() { _, _ = w.Write([]byte(a.raw)) }() // an early answer may come before all is sent
		method, _, _ := strings.Cut(strings.TrimSpace(a.raw), " ")
		got := w.next(t, method)
		if got == nil {
			t.Errorf("%s: no answer, expected %d", a.name, a.status)
			continue
		}
		if got.StatusCode != a.status {
			t.Errorf("%s: got %d %q, expected %d", a.name, got.StatusCode, got.body, a.status)
		}
		if strings.Contains(got.body, "smuggled") || a.status != 200 && !strings.HasPrefix(got.body, "penstock: ") {
			t.Errorf("%s: answer %q", a.name, got.body)
		}
		seen := backend.since(before)
		if a.seen >= 0 && len(seen) != a.seen || len(seen) > 1 {
			t.Errorf("%s: the backend got %d requests: %v", a.name, len(seen), seen)
		}
		if a.status == 200 && !got.Close {
			if fault := probe(w); fault != "" {
				t.Errorf("%s: the next request on the connection: %s", a.name, fault)
			}
		} else if rest := w.next(t, "GET"); rest != nil {
			t.Errorf("%s: another answer: %d %q", a.name, rest.StatusCode, rest.body)
		}
		_ = w.Close()
		next := dial(t, p)
		if fault := probe(next); fault != "" {
			t.Errorf("%s: the next client: %s", a.name, fault)
		}
		_ = next.Close()
	}
	if n := p.counter(t, "penstock_entry_connections_total", "outcome", "fault"); n != 0 {
		t.Errorf("net/http had %v complaints", n)
	}
	for _, s := range backend.since(0) {
		for name := range s.headers {
			if strings.HasPrefix(strings.ReplaceAll(name, "_", "-"), "penstock-") {
				t.Errorf("%s reached the backend", name)
			}
		}
	}
}
