package redirector

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"
)

// BenchmarkHandler is a redirect without a connection.
func BenchmarkHandler(b *testing.B) {
	r, _, _ := setup(b, func(o *Options) { o.Rate, o.Burst = 1e9, 1e9 })
	req := httptest.NewRequest(http.MethodGet, "/", nil)
	req.RequestURI, req.Host, req.RemoteAddr = "/r/ann/u/ann/notes?x=1", "127.0.0.1", "127.0.0.1:9"
	b.ReportAllocs()
	for b.Loop() {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, req)
		if w.Code != 307 {
			b.Fatal(w.Code)
		}
	}
}

// BenchmarkHTTP asks over connections that are kept, client and server in this
// process. p99 is of requests one after the other on each connection.
func BenchmarkHTTP(b *testing.B) {
	for _, target := range []string{"/r/ann/u/ann/notes?x=1", "/v1/locations/ann"} {
		for _, connections := range []int{1, 16} {
			b.Run(fmt.Sprintf("%s/connections=%d", target[1:3], connections), func(b *testing.B) {
				r, _, _ := setup(b, func(o *Options) { o.Rate, o.Burst = 1e9, 1e9 })
				serving(b, r)
				each := b.N/connections + 1
				took := make(chan []time.Duration, connections)
				b.ReportAllocs()
				b.ResetTimer()
				for range connections {
					go func() { took <- askMany(b, r.Addr(), target, each) }()
				}
				var all []time.Duration
				for range connections {
					all = append(all, <-took...)
				}
				b.StopTimer()
				slices.Sort(all)
				b.ReportMetric(float64(len(all))/b.Elapsed().Seconds(), "requests/s")
				b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "p99-µs")
			})
		}
	}
}

// askMany sends n requests, each after the answer to the one before.
func askMany(b *testing.B, addr, target string, n int) []time.Duration {
	c, err := new(net.Dialer).DialContext(b.Context(), "tcp", addr)
	if err != nil {
		b.Error(err)
		return []time.Duration{0}
	}
	defer func() { _ = c.Close() }()
	request := []byte("GET " + target + " HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
	in := bufio.NewReader(c)
	took := make([]time.Duration, 0, n)
	for range n {
		t := time.Now()
		if _, err := c.Write(request); err != nil {
			b.Error(err)
			break
		}
		if err := skipAnswer(in); err != nil {
			b.Error(err)
			break
		}
		took = append(took, time.Since(t))
	}
	return took
}

// skipAnswer reads one answer, cheaply.
func skipAnswer(in *bufio.Reader) error {
	length := 0
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(line) == 2 {
			_, err := io.CopyN(io.Discard, in, int64(length))
			return err
		}
		const name = "Content-Length: "
		if len(line) > len(name) && string(line[:len(name)]) == name {
			for _, d := range line[len(name) : len(line)-2] {
				length = 10*length + int(d-'0')
			}
		}
	}
}
