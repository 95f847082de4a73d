package entry_test

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"penstock/producers/entry"
)

// multi is a raw connection of HTTP/2.
type multi struct {
	*wire
	*http2.Framer
	enc    *hpack.Encoder
	block  bytes.Buffer
	stream uint32
}

func dialH2(t *testing.T, p *point) *multi {
	w := dial(t, p)
	m := &multi{wire: w, Framer: http2.NewFramer(w, w.r), stream: 1}
	m.enc = hpack.NewEncoder(&m.block)
	m.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	w.send(t, http2.ClientPreface)
	if err := m.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	return m
}

// ask sends a request and returns its status, 0 if the stream or the connection
// was ended instead.
func (m *multi) ask(t *testing.T, fields [][2]string, body string) (status int, text string) {
	t.Helper()
	m.block.Reset()
	for _, f := range fields {
		if err := m.enc.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}); err != nil {
			t.Fatal(err)
		}
	}
	id := m.stream
	m.stream += 2
	err := m.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: m.block.Bytes(), EndHeaders: true, EndStream: body == ""})
	if err == nil && body != "" {
		err = m.WriteData(id, true, []byte(body))
	}
	if err != nil {
		t.Fatal(err)
	}
	for {
		f, err := m.ReadFrame()
		if err != nil {
			return status, text
		}
		switch f := f.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				_ = m.WriteSettingsAck()
			}
		case *http2.MetaHeadersFrame:
			if s, err := strconv.Atoi(f.PseudoValue("status")); err == nil && f.StreamID == id && s >= 200 {
				status = s
			}
			if f.StreamEnded() && f.StreamID == id {
				return status, text
			}
		case *http2.DataFrame:
			text += string(f.Data())
			if f.StreamEnded() {
				return status, text
			}
		case *http2.RSTStreamFrame:
			if f.StreamID == id && status == 0 {
				return 0, ""
			}
			return status, text
		case *http2.GoAwayFrame:
			return 0, ""
		}
	}
}

// TestSmugglingOverHTTP2 sends what HTTP/2 can carry and HTTP/1 can't, to be
// written as HTTP/1 behind the entry point.
func TestSmugglingOverHTTP2(t *testing.T) {
	t.Parallel()
	backend := newStrictBackend(t)
	p := run(t, []string{backend.url}, func(o *entry.Options) { o.H2C = true })
	request := func(change map[string]string, more ...[2]string) [][2]string {
		var out [][2]string
		for _, f := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":authority", "x.example"}, {":path", "/p"}} {
			if v, ok := change[f[0]]; ok {
				if f[1] = v; v == "-" {
					continue
				}
			}
			out = append(out, f)
		}
		return append(out, more...)
	}
	type attack struct {
		name   string
		fields [][2]string
		body   string
		status int // 0: the stream ends without an answer; -1: refused in whatever way
		seen   int
	}
	attacks := []attack{
		{"plain", request(nil), "", 200, 1},
		{"body", request(nil), "hello", 200, 1},
		{"body with its length", request(nil, [2]string{"content-length", "5"}), "hello", 200, 1},
		{"te trailers", request(nil, [2]string{"te", "trailers"}), "", 200, 1},
		{"cookies apart", request(nil, [2]string{"cookie", "a=1"}, [2]string{"cookie", "b=2"}), "", 200, 1},
		{"our headers", request(nil, [2]string{"penstock-user", "root"}, [2]string{"penstock_hop", "b"}, [2]string{"penstock-hop", "b"}), "", 200, 1},
		{"OPTIONS *", request(map[string]string{":method": "OPTIONS", ":path": "*"}), "", 200, 1},
		{"length too small", request(nil, [2]string{"content-length", "3"}), "hello", -1, 0},
		{"length too large", request(nil, [2]string{"content-length", "9"}), "hello", -1, 0},
		{"length 0 with a body", request(nil, [2]string{"content-length", "0"}), "hello" + smuggled, -1, -1},
		{"two lengths", request(nil, [2]string{"content-length", "5"}, [2]string{"content-length", "6"}), "hello", -1, 0},
		{"CONNECT", [][2]string{{":method", "CONNECT"}, {":authority", "x.example:443"}}, "", 405, 0},
		{"TRACE", request(map[string]string{":method": "TRACE"}), "", 405, 0},
		{"host unlike authority", request(nil, [2]string{"host", "evil"}), "", -1, 0},
		{"unknown expectation", request(nil, [2]string{"expect", "200-ok"}), "", 417, 0},
	}
	for _, f := range [][2]string{
		{"connection", "close"},
		{"connection", "x-owner"},
		{"transfer-encoding", "chunked"},
		{"keep-alive", "5"},
		{"proxy-connection", "close"},
		{"upgrade", "h2c"},
		{"te", "gzip"},
		{"te", "trailers, chunked"},
		{"X-Big", "1"},
		{"x y", "1"},
		{"x:y", "1"},
		{"x\r\ny", "1"},
		{"x: y\r\ntransfer-encoding", "chunked"},
		{"", "1"},
		{"x\x00", "1"},
		{"x", "a\r\nTransfer-Encoding: chunked"},
		{"x", "a\nb"},
		{"x", "a\rb"},
		{"x", "a\x00"},
		{"x", "a\r\n\r\n" + smuggled},
		{"content-length", "5\r\nX: y"},
		{"content-length", "-1"},
		{"content-length", "+0"},
		{"content-length", "0x0"},
		{":path", "/q"},
		{":unknown", "x"},
		{"host", "a\r\nb"},
		{"cookie", "a\r\nX: y"},
		{"transfer-encoding\x00", "chunked"},
		{"transfer_encoding ", "chunked"},
	} {
		attacks = append(attacks, attack{fmt.Sprintf("field %q", f), request(nil, f), "", -1, 0})
	}
	for name, values := range map[string][]string{
		":method":    {"GET /evil HTTP/1.1\r\nX: ", "GET\r\n", "G T", "", "get", "GET\x00", "-"},
		":path":      {"/p HTTP/1.1\r\nX: y", "/p\r\n\r\nGET /smuggled HTTP/1.1", "/a b", "/a?b c", "/\x00", "/\x7f", "", "p", "*", "http://evil/p", "/p#f", "/%zz", "/\xe4", "/a\tb", "-", "//\r\n"},
		":authority": {"x.example\r\nX: y", "u@x.example", "a b", "x/y", "x?y", "x\x00", "a,b", "x:99999", "[::1", "-"},
		":scheme":    {"http\r\nX: y", "-", "http://evil/?"},
	} {
		for _, v := range values {
			attacks = append(attacks, attack{fmt.Sprintf("%s %q", name, v), request(map[string]string{name: v}), "", -1, -1})
		}
	}
	// What an attack before has begun may arrive now: each has a query of its own.
	mark := func(i int) string { return fmt.Sprintf("/p?attack-%d ", i) }
	for i, a := range attacks {
		for k, f := range a.fields {
			if f == [2]string{":path", "/p"} {
				a.fields[k][1] = strings.TrimSpace(mark(i))
			}
		}
		before := len(backend.since(0))
		m := dialH2(t, p)
		status, text := m.ask(t, a.fields, a.body)
		switch {
		case a.status >= 0 && status != a.status, a.status < 0 && a.seen == 0 && status != 0 && status < 400, strings.Contains(text, "smuggled"):
			t.Errorf("%s: got %d %q, expected %d", a.name, status, text, a.status)
		}
		seen := slices.DeleteFunc(backend.since(before), func(s seen) bool {
			return strings.Contains(s.line, "attack-") && !strings.Contains(s.line, mark(i))
		})
		if a.seen >= 0 && len(seen) != a.seen || len(seen) > 1 {
			t.Errorf("%s: the backend got %v", a.name, seen)
		}
		for _, s := range seen {
			if a.seen < 0 && !strings.HasPrefix(s.line, "POST "+mark(i)+"HTTP/1.1") {
				t.Errorf("%s: the backend got %v", a.name, s)
			}
			if s.headers["x"] != nil || s.headers["penstock-user"] != nil || s.headers["penstock_hop"] != nil {
				t.Errorf("%s: the backend got %v", a.name, s)
			}
		}
		_ = m.Close()
		next := dialH2(t, p)
		path := fmt.Sprintf("/probe-%d", before)
		if status, text := next.ask(t, request(map[string]string{":method": "GET", ":path": path}), ""); status != http.StatusOK || text != "GET "+path+" HTTP/1.1" {
			t.Errorf("%s: the next client got %d %q", a.name, status, text)
		}
		_ = next.Close()
	}
	for _, s := range backend.since(0) {
		for i, a := range attacks {
			if a.seen == 0 && strings.Contains(s.line, mark(i)) {
				t.Errorf("%s: the backend got %v in the end", a.name, s)
			}
		}
	}
}
