package entry

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"penstock/infra/clock"
	"penstock/producers/entry/strict"
)

// door is an address of an entry point, with the servers behind it: that of its
// clients, or that of the components of its site.
type door struct {
	e        *Entry
	internal bool // components of the site call others here
	listener net.Listener
	tls      *tls.Config
	h2c      bool

	plain    *http.Server // HTTP/1
	multi    *http.Server // HTTP/2
	base     context.Context
	cut      context.CancelFunc // ends the requests that still run
	conns    conns
	tunnels  tunnels
	simples  running
	draining atomic.Bool
	rowless  atomic.Int64 // requests that run: they have no row yet

	serving, looks sync.WaitGroup
	looked         context.CancelFunc
}

// newDoor makes the two servers of a door: connections are given to the one whose
// protocol they speak.
func newDoor(e *Entry, internal bool) *door {
	d := &door{e: e, internal: internal, h2c: internal || e.o.H2C}
	d.base, d.cut = context.WithCancel(context.Background())
	inBase := func(net.Listener) context.Context { return d.base }
	d.plain = &http.Server{
		Handler: e, DisableGeneralOptionsHandler: true, ErrorLog: e.errorLog(),
		// The connection has checked and bounded the header; this is never reached.
		MaxHeaderBytes: e.limits.Header + 4096,
		TLSNextProto:   map[string]func(*http.Server, *tls.Conn, http.Handler){},
		BaseContext:    inBase,
		ConnContext:    d.connContext,
		ConnState: func(c net.Conn, s http.ConnState) {
			switch guarded := c.(*strict.Conn); s {
			case http.StateIdle:
				guarded.Answered()
			case http.StateHijacked:
				guarded.Hijacked()
			}
		},
	}
	d.multi = &http.Server{
		Handler: e, DisableGeneralOptionsHandler: true, ErrorLog: e.errorLog(),
		MaxHeaderBytes: e.limits.Header, IdleTimeout: e.limits.IdleTimeout, ReadHeaderTimeout: e.limits.HeaderTimeout,
		BaseContext: inBase, ConnContext: d.connContext, Protocols: new(http.Protocols),
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: 250, SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second,
			WriteByteTimeout: e.o.Limits.WriteTimeout,
		},
	}
	d.multi.Protocols.SetHTTP2(true)
	d.multi.Protocols.SetUnencryptedHTTP2(true)
	if e.o.TLS != nil && !internal {
		d.tls = e.o.TLS.Clone()
		d.tls.NextProtos = []string{"h2", "http/1.1"}
		if d.tls.MinVersion == 0 {
			d.tls.MinVersion = tls.VersionTLS12
		}
	}
	return d
}

func (d *door) listen(address string) (err error) {
	var config net.ListenConfig
	if d.listener, err = config.Listen(context.Background(), "tcp", address); err != nil {
		return fmt.Errorf("entry point of %s: %w", d.e.o.Site, err)
	}
	return nil
}

// addr is the address that the door listens on, nil if it doesn't.
func (d *door) addr() net.Addr {
	if d == nil || d.listener == nil {
		return nil
	}
	return d.listener.Addr()
}

func (d *door) connContext(ctx context.Context, c net.Conn) context.Context {
	guarded, _ := c.(*strict.Conn)
	if guarded != nil {
		var leave context.CancelFunc
		ctx, leave = context.WithCancel(ctx)
		guarded.Watch(leave)
	}
	return withClient(ctx, d.newClient(c.RemoteAddr().String(), guarded, d.tls != nil))
}

// serve begins to serve; failed is told once how the listener ended.
func (d *door) serve(failed chan<- error) {
	plain, multi := newQueue(d.addr()), newQueue(d.addr())
	d.serving.Go(func() { _ = d.plain.Serve(plain) }) // ends with its queue, after Shutdown
	d.serving.Go(func() { _ = d.multi.Serve(multi) })
	var looking context.Context
	looking, d.looked = context.WithCancel(context.Background())
	d.looks.Go(func() { d.conns.look(looking) })
	d.serving.Go(func() { failed <- d.accept(plain, multi) })
}

// await waits until nothing of a door that has drained runs any more.
func (d *door) await() {
	d.serving.Wait()
	_ = d.simples.wait(context.Background()) // one may have been accepted as the drain began
	d.looked()
	d.looks.Wait()
}

// drain ends a door: nothing new is accepted, idle connections are closed, running
// requests get their time.
func (d *door) drain(until time.Time) {
	left := func() time.Duration { return max(until.Sub(clock.System().Now()), 0) }
	d.draining.Store(true)
	_ = d.listener.Close()
	d.conns.linger(min(lingerFor, d.e.o.Drain, left()))
	d.conns.close()
	defer d.cut()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	limit := clock.System().NewTimer(left())
	defer limit.Stop()
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		err := errors.Join(d.plain.Shutdown(ctx), d.multi.Shutdown(ctx), d.tunnels.wait(ctx), d.simples.wait(ctx))
		if err != nil {
			d.e.o.Logger.Warn().Str("site", d.e.o.Site).Int("connections", d.conns.len()).Msg("drain is over, requests still run: they are cut off")
		}
	}()
	select {
	case <-finished:
	case <-limit.C():
		cancel()
		<-finished
		d.cut()
		// What is left is cut off: its clients see a connection that ends.
		_ = d.plain.Close()
		_ = d.multi.Close()
		d.conns.cut()
		_ = d.simples.wait(context.Background()) // they end, for their connections are closed
	}
	d.tunnels.close()
	d.awaitRows()
}

// rowsWithin is how long the end waits for requests that were cut off.
const rowsWithin = 5 * time.Second

// awaitRows waits until the requests that were cut off have made their rows.
func (d *door) awaitRows() {
	system := clock.System()
	for end := system.Now().Add(rowsWithin); d.rowless.Load() > 0; {
		if system.Now().After(end) {
			d.e.o.Logger.Warn().Str("site", d.e.o.Site).Int64("requests", d.rowless.Load()).Msg("requests that were cut off do not end: their rows are lost")
			return
		}
		_ = system.Sleep(context.Background(), time.Millisecond) // without an end there is no error
	}
}
