package entry

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"penstock/infra/clock"
	"penstock/infra/shares"
	"penstock/producers/entry/upstream"
)

// mostProbes is the largest part of a link's requests that may be copied.
const mostProbes = 0.1

const (
	// probesAtOnce is how many probes may run, and probeWithin how long one may take.
	probesAtOnce = 64
	probeWithin  = 10 * time.Second
	// probeBytes is how much of a probe's answer is read.
	probeBytes = 256 << 10
	// probeLinks bounds the links whose probes are counted.
	probeLinks = 4096
	// probesSaved is how many probes a link can have saved up while it sent none.
	probesSaved = 5
)

// probes are the copies of requests that run in the background.
type probes struct {
	mu     sync.Mutex // of those who begin one, and the end
	open   bool
	ctx    context.Context
	cancel context.CancelFunc
	n      int
	all    sync.WaitGroup

	links atomic.Pointer[map[shares.Link]*allowance] // never changed, only replaced
}

// allowance is what a link may send.
type allowance struct {
	credit  atomic.Int64           // in millionths of a probe
	pending atomic.Pointer[string] // the site of one that is due and waits for a request that can be copied
}

const whole = 1_000_000 // millionths

// earn counts a request of which a part may be copied.
func (a *allowance) earn(part float64) {
	for {
		have := a.credit.Load()
		if a.credit.CompareAndSwap(have, min(have+int64(part*whole), probesSaved*whole)) {
			return
		}
	}
}

// spend takes a probe; false if the link has sent its part.
func (a *allowance) spend() bool {
	for {
		have := a.credit.Load()
		if have < whole {
			return false
		}
		if a.credit.CompareAndSwap(have, have-whole) {
			return true
		}
	}
}

// wait keeps a probe for the next request that can be copied; false if one waits
// already.
func (a *allowance) wait(site string) bool { return a.pending.CompareAndSwap(nil, &site) }

// of returns the allowance of a link, nil if it has none.
func (p *probes) of(l shares.Link) *allowance {
	if all := p.links.Load(); all != nil {
		return (*all)[l]
	}
	return nil
}

// make gives a link an allowance; nil if there are too many.
func (p *probes) make(l shares.Link) *allowance {
	p.mu.Lock()
	defer p.mu.Unlock()
	if a := p.of(l); a != nil {
		return a
	}
	next := map[shares.Link]*allowance{l: new(allowance)}
	if all := p.links.Load(); all != nil {
		if len(*all) >= probeLinks {
			return nil
		}
		for k, a := range *all {
			next[k] = a
		}
	}
	p.links.Store(&next)
	return next[l]
}

// begin lets probes be sent until end.
func (p *probes) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.open = true
}

// end breaks off the probes that run and waits until they have ended. There are none
// any more.
func (p *probes) end() {
	p.mu.Lock()
	p.open = false
	if p.cancel != nil {
		p.cancel()
	}
	p.mu.Unlock()
	p.all.Wait()
}

// enter counts a probe in; reason says why it may not be sent.
func (p *probes) enter() (ctx context.Context, reason string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case !p.open:
		return nil, "ended"
	case p.n >= probesAtOnce:
		return nil, "busy"
	}
	p.n++
	p.all.Add(1)
	return p.ctx, ""
}

func (p *probes) leave() {
	p.mu.Lock()
	p.n--
	p.mu.Unlock()
	p.all.Done()
}

// orderProbe finds out whether a probe of the request's link is due, and where to.
// One that is due when a request can't be copied waits for one that can.
func (x *exchange) orderProbe(l shares.Link) {
	e := x.e
	name, due := e.o.Shares.Probe(l)
	a := e.probes.of(l)
	if a == nil {
		if !due {
			return
		}
		if a = e.probes.make(l); a == nil {
			e.m.probe(x.to, probeSkipped, "links")
			return
		}
	}
	a.earn(e.o.ProbeLimit)
	if !x.copyable() {
		if due && !a.wait(name) {
			e.m.probe(x.to, probeSkipped, "not-copyable")
		}
		return
	}
	if !due {
		waiting := a.pending.Load()
		if waiting == nil || !a.pending.CompareAndSwap(waiting, nil) {
			return
		}
		name = *waiting
		// It may drain by now.
		if e.o.Shares.Ready(x.r.Context(), shares.Replica{Component: l.To, Site: name}) != nil {
			e.m.probe(x.to, probeSkipped, "not-ready")
			return
		}
	}
	site, known := e.router.index[name]
	switch own := site == e.router.own; {
	case !known, own && x.to.local == nil, !own && e.router.sites[site].Peer == nil, !x.mayServe(site):
		e.m.probe(x.to, probeSkipped, reasonNoWay)
	case site == x.split.chosen:
		e.m.probe(x.to, probeSkipped, "same-site") // the request itself is the sample
	case !a.spend():
		e.m.probe(x.to, probeSkipped, "limit")
	default:
		x.split.probe = site
	}
}

// copyable reports whether the request may be sent twice: it reads, has no body, and
// asks for no other protocol.
func (x *exchange) copyable() bool {
	switch x.r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return x.body == nil && x.tunnel == ""
	}
	return false
}

// sendProbe sends the copy that is due, after the request itself was sent. It is the
// same request, credentials and all, but for its mark. Its answer is thrown away.
func (x *exchange) sendProbe() {
	site := x.split.probe
	if !x.split.calls || site == noSite {
		return
	}
	x.split.probe = noSite
	e := x.e
	ctx, reason := e.probes.enter()
	if reason != "" {
		e.m.probe(x.to, probeSkipped, reason)
		return
	}
	c := &exchange{
		e: e, client: x.client, to: x.to, from: x.from, probe: true, start: e.o.Clock.Now(),
		user: x.user, owner: x.owner, op: x.op, asked: true, at: place{site: site}, split: splitting{calls: true, probe: noSite},
	}
	h := x.out.Header.Clone()
	h[headerProbe] = oneMark
	c.traceID = joinTrace(h, 0, &c.values.trace)
	u := *x.out.URL
	r := &http.Request{
		Method: x.out.Method, URL: &u, Host: x.out.Host, Header: h, Body: http.NoBody,
		Proto: x.out.Proto, ProtoMajor: x.out.ProtoMajor, ProtoMinor: x.out.ProtoMinor,
	}
	go func() {
		defer e.probes.leave()
		// The system's clock: what is waited for are sockets.
		ctx, cancel := context.WithDeadlineCause(ctx, clock.System().Now().Add(probeWithin), upstream.ErrTimeout)
		defer cancel()
		c.r = r.WithContext(ctx)
		c.out = c.r
		c.probeNow()
	}()
}

// probeNow sends a copy, throws its answer away, and makes its row.
func (x *exchange) probeNow() {
	e := x.e
	e.m.probe(x.to, probeSent, "")
	own := x.at.site == e.router.own
	pool := e.router.sites[x.at.site].Peer
	if own {
		pool = x.to.local
	}
	x.prepareFor(!own)
	resp, attempt, err := pool.Do(x.out, x.failed)
	x.attempt, x.toSite = attempt, e.router.sites[x.at.site].Name
	var reason string
	if err != nil {
		if own && attempt != nil {
			x.toServer = attempt.Server
		}
		x.status, reason, _ = failure(err)
		e.noAnswerFrom(x.to, x.at.site, errors.Is(err, upstream.ErrNoServer))
	} else {
		reason = x.probed(resp, !own)
	}
	if cause := context.Cause(x.r.Context()); cause != nil {
		if reason = reasonTimeout; !errors.Is(cause, upstream.ErrTimeout) {
			e.m.probe(x.to, probeFailed, "ended")
			return // it was broken off here, which says nothing of the replica
		}
		x.status = http.StatusGatewayTimeout
	}
	if reason != "" {
		e.m.probe(x.to, probeFailed, reason)
	}
	x.publish(e.o.Clock.Now())
}

// probed reads the answer to a copy. It returns why it is none.
func (x *exchange) probed(resp *http.Response, peer bool) (reason string) {
	x.status = resp.StatusCode
	x.credit(resp, peer)
	n, err := io.CopyN(io.Discard, resp.Body, probeBytes)
	x.sent = n
	_ = resp.Body.Close() // what it has beyond that doesn't matter
	unknown := peer && first(resp.Header, headerPeer) == peerUnknown
	switch own := saidReason(resp.Header); {
	case err != nil && !errors.Is(err, io.EOF):
		x.status = http.StatusBadGateway
		x.e.noAnswerFrom(x.to, x.at.site, false)
		return "broken-off"
	case peer && own != "" || unknown:
		// The peer answered by itself, as fast as it could: that is no sample.
		x.attempt = nil
		x.e.noAnswerFrom(x.to, x.at.site, own == reasonNoComponent || own == reasonNoServer || unknown)
		if unknown {
			return reasonPeerKey
		}
		return own
	case x.to.owns && isWord(resp, peer):
		x.attempt = nil
		return "misdirected"
	}
	x.e.answeredBy(x.to, x.at.site)
	if resp.StatusCode >= http.StatusInternalServerError {
		return "status"
	}
	return ""
}
