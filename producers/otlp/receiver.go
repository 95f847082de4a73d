package otlp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"golang.org/x/net/netutil"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	_ "google.golang.org/grpc/encoding/gzip" // clients may send it

	"penstock/infra/door"
	"penstock/producers/otlp/join"
	"penstock/producers/otlp/span"
	"penstock/producers/otlp/wire"
	"penstock/schemas/event"
)

// Receiver takes spans and publishes calls. See the package's comment.
type Receiver struct {
	o        Options
	queue    *queue
	decoders chan *decoder
	joiner   *join.Joiner
	row      event.Request
	open     atomic.Int64
	m        *metrics
	door     *door.Door
	peers    *peers // nil if traces are not shared
	stats    atomic.Pointer[join.Stats]
}

// decoder is one of those that decode at the same time.
type decoder struct {
	*wire.Decoder
	batch  batch
	reason string // of the first span that was none
}

// New makes a receiver; Run serves. The error wraps ErrOptions or span.ErrRule, or
// is the registry's; the listeners are still the caller's then.
func New(o Options) (*Receiver, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	guard, err := o.guard()
	if err != nil {
		return nil, err
	}
	r := &Receiver{o: o, door: guard, queue: newQueue(o.QueueMax), decoders: make(chan *decoder, o.Concurrency)}
	for range o.Concurrency {
		m, err := span.NewMapper(o.Rules)
		if err != nil {
			return nil, fmt.Errorf("OTLP receiver: %w", err)
		}
		d := &decoder{}
		d.Decoder = wire.New(m, func(s *span.Span) { d.batch.spans = append(d.batch.spans, *s) }, func(err error) {
			if d.batch.malformed++; d.reason == "" {
				d.reason = err.Error()
			}
		})
		r.decoders <- d
	}
	r.joiner = join.New(join.Options{
		Entries: o.Entries, MaxSpans: o.MaxSpans, Live: true, Step: o.tick().Microseconds(), Window: o.Window.Microseconds(), MaxAge: o.MaxAge.Microseconds(),
	}, func(c *join.Call) {
		c.Request(&r.row, o.Service)
		o.Publisher.Publish(&r.row)
	})
	r.stats.Store(&join.Stats{})
	if r.m, err = newMetrics(r); err != nil {
		return nil, err
	}
	r.peers, err = dialPeers(&r.o, func(outcome string) { r.m.shared.WithLabelValues(outcome).Inc() })
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Stats are the totals up to the last look at the traces.
func (r *Receiver) Stats() join.Stats { return *r.stats.Load() }

// Run serves until ctx ends, and returns nil then, once all that was taken has been
// published; or it returns what ended a listener, and serves nothing any more. It
// may be called once.
func (r *Receiver) Run(ctx context.Context) error {
	group, serving := errgroup.WithContext(ctx)
	if r.o.GRPC != nil {
		group.Go(func() error { return r.serveGRPC(serving) })
	}
	if r.o.HTTP != nil {
		group.Go(func() error { return r.serveHTTP(serving) })
	}
	joined := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(joined)
		r.join(ended)
	}()
	err := group.Wait() // requests under way have been answered
	r.queue.close()
	close(ended)
	<-joined
	if r.peers != nil {
		err = errors.Join(err, r.peers.close())
	}
	return err
}

// join makes calls of what is in the queue until ended is closed, and then of all
// that is left.
func (r *Receiver) join(ended <-chan struct{}) {
	tick := r.o.Clock.NewTicker(r.o.tick())
	defer tick.Stop()
	now := r.o.Clock.Now().UnixMicro()
	for {
		over := false
		select {
		case <-r.queue.some:
		case <-tick.C():
		case <-ended:
			over = true
		}
		now = max(now, r.o.Clock.Now().UnixMicro()) // clocks are set back
		batches := r.queue.take()
		for i := range batches {
			for j := range batches[i].spans {
				r.joiner.Add(now, &batches[i].spans[j])
			}
			r.joiner.Malformed(batches[i].malformed)
		}
		r.queue.done(batches)
		if r.joiner.Advance(now); over {
			r.joiner.Flush()
		}
		r.open.Store(int64(r.joiner.Held()))
		s := r.joiner.Stats()
		r.m.observe(s)
		r.stats.Store(&s)
		if over {
			return
		}
	}
}

// taken is what became of a request that was taken.
type taken struct {
	rejected int64
	reason   string
}

// take decodes a request and puts it into the queue, whole or not at all, but for
// spans of traces that others have, which are sent to them first. The error is
// errBusy, errClosing, ctx's, or wraps span.ErrMalformed.
func (r *Receiver) take(ctx context.Context, decode func(*decoder) error) (taken, error) {
	if err := r.queue.full(); err != nil {
		return taken{}, err
	}
	var d *decoder
	select {
	case d = <-r.decoders:
	case <-ctx.Done():
		return taken{}, ctx.Err()
	}
	defer func() {
		d.batch, d.reason = batch{}, ""
		r.decoders <- d
	}()
	d.batch.spans = r.queue.room()
	if err := decode(d); err != nil {
		return taken{}, err
	}
	if r.peers != nil {
		own, err := r.peers.share(ctx, d.batch.spans)
		if err != nil {
			return taken{}, err
		}
		d.batch.spans = own
	}
	if err := r.queue.put(d.batch); err != nil {
		return taken{}, err
	}
	return taken{d.batch.malformed, d.reason}, nil
}

// takeShared takes what another receiver sends. It waits for no decoder, or two
// receivers could wait for each other.
func (r *Receiver) takeShared(req *collector.ExportTraceServiceRequest) error {
	if err := r.queue.full(); err != nil {
		return err
	}
	b := batch{spans: r.queue.room()}
	if err := unpackShared(&b, req); err != nil {
		return err
	}
	return r.queue.put(b)
}

// limited is a listener for so many connections, secured if that is wanted.
func (r *Receiver) limited(l net.Listener) net.Listener {
	return netutil.LimitListener(l, r.o.Connections)
}

// serveGRPC serves until ctx ends.
func (r *Receiver) serveGRPC(ctx context.Context) error {
	options := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(int(r.o.MaxBody)), grpc.MaxConcurrentStreams(uint32(max(r.o.Concurrency, 1))),
		grpc.ConnectionTimeout(10 * time.Second), grpc.InTapHandle(r.admit),
	}
	if r.o.TLS != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(r.o.TLS)))
	}
	server := grpc.NewServer(options...)
	collector.RegisterTraceServiceServer(server, &traceService{r: r})
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(r.limited(r.o.GRPC)) }()
	select {
	case err := <-failed:
		return fmt.Errorf("OTLP over gRPC: %w", err)
	case <-ctx.Done():
	}
	stopped := make(chan struct{})
	go func() {
		server.GracefulStop()
		close(stopped)
	}()
	timer := r.o.Clock.NewTimer(r.o.CloseTimeout)
	defer timer.Stop()
	select {
	case <-stopped:
	case <-timer.C():
		server.Stop() // GracefulStop returns, too
		<-stopped
	}
	if err := <-failed; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("OTLP over gRPC: %w", err)
	}
	return nil
}

// serveHTTP serves until ctx ends.
func (r *Receiver) serveHTTP(ctx context.Context) error {
	server := &http.Server{
		Handler: r.Handler(), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 20 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 64 << 10, TLSConfig: r.o.TLS.Clone(), // It is completed, and gRPC reads its own.
	}
	failed := make(chan error, 1)
	go func() {
		if r.o.TLS != nil {
			failed <- server.ServeTLS(r.limited(r.o.HTTP), "", "")
		} else {
			failed <- server.Serve(r.limited(r.o.HTTP))
		}
	}()
	select {
	case err := <-failed:
		return fmt.Errorf("OTLP over HTTP: %w", err)
	case <-ctx.Done():
	}
	// By our clock, as all that waits here.
	closing, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	timer := r.o.Clock.NewTimer(r.o.CloseTimeout)
	defer timer.Stop()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		if server.Shutdown(closing) != nil {
			_ = server.Close() // nothing is left to tell whoever is still there
		}
	}()
	select {
	case <-stopped:
	case <-timer.C():
		cancel()
		<-stopped
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("OTLP over HTTP: %w", err)
	}
	return nil
}
