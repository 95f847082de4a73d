package entry_test

import (
	"bytes"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"penstock/infra/shares"
	"penstock/producers/entry"
	"penstock/schemas/event"
)

// forget is a publisher that costs nothing.
type forget struct{}

func (forget) Publish(*event.Request) {}

// fixedBackend answers each head with the same bytes and allocates nothing.
func fixedBackend(b *testing.B, size int) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	answer := []byte("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: " + strconv.Itoa(size) + "\r\n\r\n" + strings.Repeat("x", size))
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				buffer := make([]byte, 8192)
				for n := 0; ; {
					m, err := c.Read(buffer[n:])
					if err != nil {
						return
					}
					if n += m; bytes.HasSuffix(buffer[:n], []byte("\r\n\r\n")) {
						if _, err := c.Write(answer); err != nil {
							return
						}
						n = 0
					}
				}
			})
		}
	})
	b.Cleanup(func() {
		_ = l.Close()
		all.Wait()
	})
	return "http://" + l.Addr().String()
}

// BenchmarkRequest is one client's requests of 1 KB one after the other, through
// sockets: client, entry point and server share the processor.
func BenchmarkRequest(b *testing.B) {
	p := run(b, nil, func(o *entry.Options) {
		o.Local, o.Publisher = pool(b, "a", fixedBackend(b, 1024)), forget{}
	})
	p.places.set("alice", "a", 7)
	roundTrips(b, p)
}

// roundTrips measures requests over one connection, one after the other.
func roundTrips(b *testing.B, p *point) {
	b.Helper()
	w := dial(b, p)
	_ = w.SetDeadline(time.Time{})
	request := []byte("GET /u/alice/inbox?page=2 HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: bench\r\nAccept: */*\r\nX-User: bob\r\n\r\n")
	buffer := make([]byte, 8192)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := w.Write(request); err != nil {
			b.Fatal(err)
		}
		need := -1
		for n := 0; need < 0 || n < need; {
			m, err := w.Read(buffer[n:])
			if err != nil {
				b.Fatal(err)
			}
			n += m
			if i := bytes.Index(buffer[:n], []byte("\r\n\r\n")); need < 0 && i >= 0 {
				need = i + 4 + 1024
			}
		}
	}
}

// BenchmarkUpload is the same with a body of 64 KiB in chunks.
func BenchmarkUpload(b *testing.B) {
	p := run(b, []string{service(b, readAll)}, func(o *entry.Options) { o.Publisher = forget{} })
	c := client(b)
	body := strings.Repeat("x", 64<<10)
	b.SetBytes(64 << 10)
	b.ReportAllocs()
	for b.Loop() {
		resp, err := c.Post(p.url+"/u/alice/x", "text/plain", io.MultiReader(strings.NewReader(body)))
		if err != nil {
			b.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
}

// BenchmarkSplit is BenchmarkRequest with a split of which all stays here, beside the
// same requests without one.
func BenchmarkSplit(b *testing.B) {
	for name, split := range map[string]bool{"with": true, "without": false} {
		b.Run(name, func(b *testing.B) {
			p := run(b, nil, func(o *entry.Options) {
				o.Local, o.Publisher, o.Owner = pool(b, "a", fixedBackend(b, 1024)), forget{}, nil
				if !split {
					return
				}
				o.Shares = shares.New(shares.Options{})
				o.Components = []entry.ComponentRoute{{Name: "shop", Hosts: []string{"x.example"}, Public: true}, {Name: "cart", Hosts: []string{"cart.internal"}}}
				if _, err := o.Shares.Put(b.Context(), shares.Table{
					From: "entry", Epoch: 1, Rows: []shares.Row{{FromSite: "a", To: "web", Ratios: ratios("a", 1.0, "b", 0.0)}},
					Probes: []shares.Probe{{FromSite: "a", To: "web", Site: "a", Share: 0.05}},
				}); err != nil {
					b.Fatal(err)
				}
			})
			roundTrips(b, p)
		})
	}
}
