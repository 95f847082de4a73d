package otlp

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"golang.org/x/sync/errgroup"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"penstock/infra/clock"
	"penstock/producers/otlp/span"
)

// sharedKey marks a request that a receiver sends to another: its spans are mapped
// already, and stay where they come to.
const sharedKey = "penstock-shared"

const (
	// peerTimeout is how long another receiver may take for an answer.
	peerTimeout = 5 * time.Second
	// downFor is how long one is passed over that can't be reached.
	downFor = 5 * time.Second
)

// peers are the receivers that share traces: each trace has one owner, where both
// halves of its calls meet, wherever they arrive. The owner is the one with the
// greatest hash of trace and name among those that can be reached, so that all
// agree who it is, and few traces move when one goes.
type peers struct {
	clock   clock.Clock
	self    int
	hashes  []uint64
	conns   []*grpc.ClientConn // nil of self
	clients []collector.TraceServiceClient
	down    []atomic.Int64 // µs until which one is passed over
	m       func(outcome string)
	marks   []string // metadata of what is sent to them
}

// dialPeers makes the connections; they are opened when they are first needed.
func dialPeers(o *Options, m func(string)) (*peers, error) {
	if len(o.Peers) == 0 {
		return nil, nil
	}
	p := &peers{clock: o.Clock, self: slices.Index(o.Peers, o.Self), m: m, down: make([]atomic.Int64, len(o.Peers)), marks: []string{sharedKey, "1"}}
	if o.Token != "" {
		p.marks = append(p.marks, "authorization", bearer+o.Token)
	}
	if p.self < 0 {
		return nil, fmt.Errorf("self %q is not among the peers %q: %w", o.Self, o.Peers, ErrOptions)
	}
	for i, name := range o.Peers {
		if slices.Index(o.Peers, name) != i {
			return nil, errors.Join(fmt.Errorf("peer %q stands twice: %w", name, ErrOptions), p.close())
		}
		p.hashes = append(p.hashes, xxhash.Sum64String(name))
		p.conns, p.clients = append(p.conns, nil), append(p.clients, nil)
		if i == p.self {
			continue
		}
		c, err := grpc.NewClient(name, o.PeerDial...)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("peer %s: %w: %w", name, err, ErrOptions), p.close())
		}
		p.conns[i], p.clients[i] = c, collector.NewTraceServiceClient(c)
	}
	return p, nil
}

func (p *peers) close() error {
	var errs []error
	for _, c := range p.conns {
		if c != nil {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}

// owner returns which receiver a trace belongs to.
func (p *peers) owner(t span.Trace, now int64) (best int) {
	var key [24]byte
	copy(key[8:], t[:])
	most := uint64(0)
	best = p.self
	for i, h := range p.hashes {
		if i != p.self && p.down[i].Load() > now {
			continue
		}
		binary.LittleEndian.PutUint64(key[:], h)
		if v := xxhash.Sum64(key[:]); v >= most {
			best, most = i, v
		}
	}
	return best
}

// share sends the spans of others to them and returns this receiver's own, which
// stand in the same memory. After an error some may have been sent: whoever sends
// all of them again does no harm, for repeats are recognised.
func (p *peers) share(ctx context.Context, spans []span.Span) ([]span.Span, error) {
	own := spans[:0]
	var rest []span.Span // of others; a copy, as own overwrites
	now := p.clock.Now().UnixMicro()
	for i := range spans {
		if p.owner(spans[i].Trace, now) == p.self {
			own = append(own, spans[i])
		} else {
			rest = append(rest, spans[i])
		}
	}
	for range p.hashes {
		if len(rest) == 0 {
			return own, nil
		}
		left, err := p.send(ctx, rest)
		if err != nil {
			return nil, err
		}
		// Those of receivers that have just gone have others now.
		now, rest = p.clock.Now().UnixMicro(), rest[:0]
		for i := range left {
			if p.owner(left[i].Trace, now) == p.self {
				own = append(own, left[i])
			} else {
				rest = append(rest, left[i])
			}
		}
	}
	if len(rest) > 0 {
		return nil, errBusy // they come and go
	}
	return own, nil
}

// send sends spans to their owners and returns those whose owner can't be reached.
func (p *peers) send(ctx context.Context, spans []span.Span) (left []span.Span, err error) {
	now := p.clock.Now().UnixMicro()
	by := make([][]span.Span, len(p.hashes))
	for i := range spans {
		o := p.owner(spans[i].Trace, now)
		by[o] = append(by[o], spans[i])
	}
	left = by[p.self]
	gone := make([]bool, len(by))
	within, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(ctx, p.marks...), peerTimeout)
	defer cancel()
	var group errgroup.Group
	for i := range by {
		if i == p.self || len(by[i]) == 0 {
			continue
		}
		group.Go(func() error {
			_, err := p.clients[i].Export(within, packShared(by[i]))
			switch {
			case err == nil:
				p.m("sent")
			case isBusy(err):
				p.m("busy")
				return errBusy
			case ctx.Err() != nil:
				return ctx.Err() // the client has gone, not the receiver
			default:
				p.m("unreachable")
				gone[i] = true
				p.down[i].Store(p.clock.Now().Add(downFor).UnixMicro())
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for i := range by {
		if gone[i] {
			left = append(left, by[i]...)
		}
	}
	return left, nil
}

// isBusy tells a receiver that has no room from one that isn't there.
func isBusy(err error) bool {
	s := status.Convert(err)
	if s.Code() != codes.Unavailable {
		return false
	}
	return slices.ContainsFunc(s.Details(), func(d any) bool {
		_, ok := d.(*errdetails.RetryInfo)
		return ok
	})
}

// isShared reports whether a request comes from another receiver.
func isShared(ctx context.Context) bool {
	md, ok := metadata.FromIncomingContext(ctx)
	return ok && len(md.Get(sharedKey)) > 0
}
