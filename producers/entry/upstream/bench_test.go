package upstream

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"penstock/infra/clock"
)

// typical is an answer of 1 KB with the header of a common server.
var typical = "HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Mon, 30 Nov 2026 09:39:52 GMT\r\nContent-Type: text/plain\r\n" +
	"Content-Length: 1024\r\nLast-Modified: Mon, 30 Nov 2026 09:39:51 GMT\r\nConnection: keep-alive\r\nETag: \"6b0d4467-400\"\r\n" +
	"Accept-Ranges: bytes\r\n\r\n" + strings.Repeat("x", 1024)

// serveTypical answers each request at the least cost: what is measured is the
// client.
func serveTypical(b *testing.B) string {
	answer := []byte(typical)
	return serveRaw(b, func(_ int, c net.Conn, _ *bufio.Reader) {
		request := make([]byte, 64<<10)
		for {
			if _, err := c.Read(request); err != nil {
				return
			}
			if _, err := c.Write(answer); err != nil {
				return
			}
		}
	}).URL
}

func requestLikeTheirs(b *testing.B, url string) *http.Request {
	req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, url+"/u/someone/timeline?since=17", http.NoBody)
	if err != nil {
		b.Fatal(err)
	}
	for k, v := range map[string]string{
		"User-Agent": "wrk", "Accept": "*/*", "Accept-Encoding": "gzip", "Cookie": "session=0123456789abcdef",
		"X-Forwarded-For": "192.0.2.7", "Traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	} {
		req.Header.Set(k, v)
	}
	return req
}

// BenchmarkRequest is one request and its answer of 1 KB over a kept connection
// of the loopback interface, server included: by the pool, and by a transport of
// net/http with as large an idle pool.
func BenchmarkRequest(b *testing.B) {
	url := serveTypical(b)
	transport := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 1024}
	b.Cleanup(transport.CloseIdleConnections)
	for _, client := range []struct {
		name string
		http.RoundTripper
	}{{"pool", newPool(b, Options{}, url)}, {"transport", transport}} {
		b.Run(client.name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				req, buffer := requestLikeTheirs(b, url), make([]byte, 32<<10)
				for pb.Next() {
					resp, err := client.RoundTrip(req)
					if err != nil {
						b.Error(err)
						return
					}
					if _, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, resp.Body, buffer); err != nil {
						b.Error(err)
						return
					}
					_ = resp.Body.Close()
				}
			})
		})
	}
}

// BenchmarkHead is the head of that answer, by the short way and by net/textproto.
func BenchmarkHead(b *testing.B) {
	head := []byte(typical[:strings.Index(typical, "\r\n\r\n")+4])
	b.Run("plain", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var resp http.Response
			if !parsePlain(head, &resp) {
				b.Fatal("not plain")
			}
		}
	})
	b.Run("textproto", func(b *testing.B) {
		c := newConn(nil, nil, clock.System())
		b.ReportAllocs()
		for b.Loop() {
			var resp http.Response
			c.r.Reset(strings.NewReader(typical))
			if err := parseAny(c.r, &resp); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkPick is the choice among 10 servers.
func BenchmarkPick(b *testing.B) {
	var members []*Member
	for i := range 10 {
		s := &server{}
		s.weight.Store(int64(i%3 + 1))
		members = append(members, &Member{s: s})
	}
	var l LeastOutstanding
	b.ReportAllocs()
	for b.Loop() {
		l.Pick(nil, members)
	}
}

// BenchmarkWrite is the making of a request's bytes.
func BenchmarkWrite(b *testing.B) {
	req := requestLikeTheirs(b, "http://service")
	p := newPool(b, Options{}, "http://127.0.0.1:1")
	m := new(message)
	b.ReportAllocs()
	for b.Loop() {
		if err := m.write(req, p.servers[0]); err != nil {
			b.Fatal(err)
		}
	}
}
