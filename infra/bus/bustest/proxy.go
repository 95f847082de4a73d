package bustest

import (
	"context"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Proxy stands between a client and a bus that listens, and cuts what goes
// through it. Its URL is that of the bus to a client.
type Proxy struct {
	URL string

	target   string
	listener net.Listener
	deaf     atomic.Bool
	held     atomic.Pointer[chan struct{}] // closed when answers are let go; nil: nothing is held
	tasks    sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]struct{}
	shut  bool
	end   chan struct{} // closed with the test
}

// NewProxy starts a proxy in front of a server's URL ("nats://host:port").
func NewProxy(t testing.TB, url string) *Proxy {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{
		URL: "nats://" + l.Addr().String(), target: strings.TrimPrefix(url, "nats://"),
		listener: l, conns: map[net.Conn]struct{}{}, end: make(chan struct{}),
	}
	ctx := t.Context()
	p.tasks.Go(func() { p.accept(ctx) })
	t.Cleanup(func() {
		_ = l.Close() // ends accept
		p.mu.Lock()
		p.shut = true
		p.mu.Unlock()
		close(p.end)
		p.Cut()
		p.tasks.Wait()
	})
	return p
}

// Deaf throws away what the server answers from now on, or no longer: what is
// sent arrives, and its sender never learns.
func (p *Proxy) Deaf(on bool) { p.deaf.Store(on) }

// Hold keeps back what the server answers until release is called, as a bus does
// that is slow or frozen.
func (p *Proxy) Hold() (release func()) {
	ch := make(chan struct{})
	p.held.Store(&ch)
	return sync.OnceFunc(func() {
		p.held.CompareAndSwap(&ch, nil)
		close(ch)
	})
}

// Cut closes all connections. New ones are let through.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close() // it may be closed already
	}
	clear(p.conns)
}

func (p *Proxy) accept(ctx context.Context) {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := new(net.Dialer).DialContext(ctx, "tcp", p.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.conns[client], p.conns[server] = struct{}{}, struct{}{}
		shut := p.shut
		p.mu.Unlock()
		if shut {
			p.Cut()
		}
		p.tasks.Go(func() { p.pipe(server, client, false) })
		p.tasks.Go(func() { p.pipe(client, server, true) })
	}
}

// pipe copies until an end is closed, then closes both.
func (p *Proxy) pipe(to, from net.Conn, answers bool) {
	defer func() { _, _ = to.Close(), from.Close() }()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if held := p.held.Load(); answers && held != nil {
			select {
			case <-*held:
			case <-p.end:
			}
		}
		if n > 0 && !(answers && p.deaf.Load()) {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
