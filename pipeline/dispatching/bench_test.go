package dispatching

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"penstock/consumers/executor/dispatcher"
	"penstock/producers/entry"
	"penstock/producers/entry/upstream"
	"penstock/schemas/event"
)

// forget is a publisher that costs nothing.
type forget struct{}

func (forget) Publish(*event.Request) {}

// fixed answers each head with the same 1 KB and allocates nothing.
func fixed(b *testing.B) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	answer := []byte("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 1024\r\n\r\n" + strings.Repeat("x", 1024))
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
				for {
					if _, err := c.Read(buffer); err != nil {
						return
					}
					if _, err := c.Write(answer); err != nil {
						return
					}
				}
			})
		}
	})
	b.Cleanup(func() {
		_ = l.Close()
		all.Wait()
	})
	return l.Addr().String()
}

// BenchmarkEntry is one client's requests of 1 KB one after the other, through an entry
// point with four servers: with a dispatcher, by policy, and without.
func BenchmarkEntry(b *testing.B) {
	for _, policy := range []string{"", "A1", "A2", "A3", "ll", "p2c", "auto"} {
		name := policy
		if name == "" {
			name = "without"
		}
		b.Run(name, func(b *testing.B) { benchmarkEntry(b, policy) })
	}
}

func benchmarkEntry(b *testing.B, policy string) {
	z := dispatcher.Zone{Name: "z"}
	uo := upstream.Options{Name: "here", Logger: zerolog.Nop()}
	for range 4 {
		address := fixed(b)
		z.Servers = append(z.Servers, dispatcher.Server{Name: address})
		uo.Servers = append(uo.Servers, upstream.Server{Name: address, URL: "http://" + address})
	}
	if policy != "" {
		d, err := New(dispatcher.Options{
			Site: "here", Policy: policy, Zones: []dispatcher.Zone{z},
			Classes: []dispatcher.Class{{Name: "dynamic", Limit: 100 * time.Millisecond, Penalty: 1, Dynamic: true}},
		})
		if err != nil {
			b.Fatal(err)
		}
		uo.Dispatcher = d
	}
	pool, err := upstream.New(uo)
	if err != nil {
		b.Fatal(err)
	}
	e, err := entry.New(entry.Options{
		Listen: "127.0.0.1:0", Site: "here", Sites: []entry.Site{{Name: "here"}}, Component: "web", Publisher: forget{}, Local: pool,
		Class: []entry.ClassRule{{Path: "/**", Class: "dynamic"}}, HashKey: []byte("a key of tests"),
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	runs(b, e.Run)
	c, err := net.Dial("tcp", e.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	request := []byte("GET /u/alice/inbox?page=2 HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: bench\r\nAccept: */*\r\nX-User: bob\r\n\r\n")
	buffer := make([]byte, 8192)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Write(request); err != nil {
			b.Fatal(err)
		}
		need := -1
		for n := 0; need < 0 || n < need; {
			m, err := c.Read(buffer[n:])
			if err != nil && !errors.Is(err, io.EOF) {
				b.Fatal(err)
			}
			n += m
			if i := bytes.Index(buffer[:n], []byte("\r\n\r\n")); need < 0 && i >= 0 {
				need = i + 4 + 1024
			}
		}
	}
}
