package entry

import (
	"net/http"
	"strconv"
	"time"

	"penstock/producers/entry/upstream"
	"penstock/schemas/event"
)

// Pauses between attempts while an owner is on the move: the site that had the
// data has let it go, the one that gets it does not serve it yet.
const (
	firstPause = 5 * time.Millisecond
	mostPause  = 100 * time.Millisecond
)

// route sends the request where the owner's data is, and follows it if it is on
// the move, until there is an answer or Options.Hold is over.
func (x *exchange) route() {
	e := x.e
	if !x.to.owns {
		if x.hop != nil || x.marked {
			x.callHere() // one hop is all
			return
		}
		x.call()
		return
	}
	p := x.find()
	if x.maySplit(p) {
		next, answered := x.call()
		if answered {
			return
		}
		if x.body != nil && !x.body.again() {
			x.leaveToClient(next)
			return
		}
		p = x.findAfter(next)
	}
	for pause, followed := firstPause, false; ; {
		way := e.router.decide(p, x.hop, x.marked, !x.redirectable())
		if way == redirect && e.router.sites[p.site].Peer != nil && e.recent.has(x.owner, e.o.Clock.Now()) {
			way = forward
		}
		if way == serve {
			p = e.router.served(p, x.hop)
		}
		x.at = p
		var next place
		answered := true
		switch way {
		case serve:
			next, answered = x.serveHere(p)
		case forward:
			next, answered = x.send(e.router.sites[p.site].Peer, true)
		case redirect:
			x.redirectTo(p)
		case misdirected:
			x.misdirect(p)
		case disowned:
			x.disown(p)
		default:
			x.kind = kindFailed
			x.refuse(http.StatusServiceUnavailable, "no-way", "the site that may serve this can't be reached from here")
		}
		if answered {
			return
		}
		if x.body != nil && !x.body.again() {
			x.leaveToClient(next)
			return
		}
		if !followed && next.site != noSite && next.site != p.site {
			p, followed = next, true // the first word of another site is followed at once
			continue
		}
		if !x.pause(pause) {
			return
		}
		pause = min(2*pause, mostPause)
		// By now the bus, or another request, may have brought a newer word.
		p = x.findAfter(next)
	}
}

// redirectable reports whether the client can be sent elsewhere: a change of
// protocol can't, and what asks a server for itself (OPTIONS *) has no path.
func (x *exchange) redirectable() bool { return x.tunnel == "" && x.r.URL.Path != "*" }

func (x *exchange) find() place {
	p, strange := x.e.router.find(x.owner)
	if strange {
		x.e.m.ignored("location", "site")
	}
	if x.hop != nil && p.known && p.site != x.e.router.own && x.hop.version > p.version {
		// The peer that forwarded this has heard of a move that brought the data here.
		x.e.o.Locations.Learn(x.owner, x.e.o.Site, x.hop.version)
	}
	return p
}

// findAfter is find once another site has said where the data is: the newer word counts.
func (x *exchange) findAfter(next place) place {
	p := x.find()
	if next.site != noSite && (!p.known || p.version < next.version) {
		return next
	}
	return p
}

// pause waits for d; if there is no more time, or no more client, it answers and
// returns false.
func (x *exchange) pause(d time.Duration) bool {
	e := x.e
	left := e.o.Hold - e.o.Clock.Now().Sub(x.start)
	if left <= 0 {
		x.moving()
		return false
	}
	e.m.waits.Inc()
	if e.o.Clock.Sleep(x.r.Context(), min(d, left)) != nil {
		x.gone = true
		return false
	}
	return true
}

func (x *exchange) moving() {
	x.kind = kindFailed
	x.refuse(http.StatusServiceUnavailable, reasonMoving, "the data is being moved: try again")
}

// leaveToClient answers a request whose body has gone and can't be had again:
// the client knows it, and is told where to send it.
func (x *exchange) leaveToClient(next place) {
	if x.hop != nil {
		x.misdirect(next)
		return
	}
	if x.marked {
		x.disown(next)
		return
	}
	if next.site != noSite && x.e.router.sites[next.site].URL != "" && x.redirectable() {
		x.redirectTo(next)
		return
	}
	x.moving()
}

// serveHere sends the request to a server of the site. A write goes through the
// gate; if the owner was moved meanwhile, answered is false.
func (x *exchange) serveHere(p place) (next place, answered bool) {
	e := x.e
	if e.o.Gate == nil || x.op != event.Write || x.owner == "" {
		return x.send(x.to.local, false)
	}
	for {
		leave, held := e.o.Gate.Enter(x.owner)
		if held == nil {
			defer leave()
			// The owner may have moved, hold and all, since its location was looked up;
			// from here on it can't.
			if now := x.find(); now.known && now.site != p.site && (!p.known || now.version > p.version) {
				return now, false
			}
			return x.send(x.to.local, false)
		}
		if !x.waitAt(held) {
			return p, true
		}
		if now := x.find(); now.site != p.site {
			return now, false
		}
	}
}

// waitAt waits until a hold is over; if it lasts too long, or the client leaves,
// it answers and returns false.
func (x *exchange) waitAt(held <-chan struct{}) bool {
	e := x.e
	e.m.holds.Inc()
	began := e.o.Clock.Now()
	timer := e.o.Clock.NewTimerAt(x.start.Add(e.o.Hold))
	defer timer.Stop()
	defer func() { x.held += e.o.Clock.Now().Sub(began) }()
	select {
	case <-held:
		return true
	case <-timer.C():
		x.moving()
	case <-x.r.Context().Done():
		x.gone = true
	}
	return false
}

// send makes one attempt. answered is false if the data isn't there: next is
// where it is said to be.
func (x *exchange) send(pool Upstream, peer bool) (next place, answered bool) {
	if !x.prepareFor(peer) {
		return next, true
	}
	x.asked, x.handed = true, time.Time{}
	x.ask(true)
	resp, attempt, err := pool.Do(x.out, x.observe)
	x.ask(false)
	x.attempt, x.toSite = attempt, x.e.router.sites[x.at.site].Name
	x.sendProbe()
	if err != nil {
		if x.split.calls {
			if next, fell := x.lost(err, peer); fell {
				return next, false
			}
		}
		if !peer && attempt != nil {
			x.toServer = attempt.Server
		}
		x.fail(err)
		return next, true
	}
	if peer && resp.StatusCode == http.StatusLoopDetected && first(resp.Header, headerPeer) == peerUnknown {
		return x.unknownTo(resp)
	}
	if x.split.calls {
		if next, fell := x.judge(resp, peer); fell {
			return next, false
		}
	}
	if x.to.owns && isWord(resp, peer) {
		next = x.word(resp.Header)
		_ = resp.Body.Close() // nothing that it says matters
		x.toSite = ""         // what answers the client is to be seen
		x.e.m.misdirections.Inc()
		if x.hop != nil {
			x.misdirect(next)
			return next, true
		}
		x.failed(attempt)
		x.attempt, x.asked = nil, false // it has its row
		return next, false
	}
	x.answer(resp, peer)
	return next, true
}

// isWord reports whether an answer says that the data is elsewhere. A peer that
// hands on what a server of it answered names the server.
func isWord(resp *http.Response, peer bool) bool {
	return resp.StatusCode == http.StatusMisdirectedRequest && first(resp.Header, headerSite) != "" &&
		(!peer || first(resp.Header, headerServer) == "")
}

// unknownTo handles what a peer answers that did not take this entry point for one
// of its peers: their keys differ. It believed nothing of what was said to it, so its
// word counts only if it is newer than what is known here.
func (x *exchange) unknownTo(resp *http.Response) (next place, answered bool) {
	e, believed := x.e, x.at
	if _, told := e.strangers.LoadOrStore(believed.site, true); !told {
		e.o.Logger.Error().Str("site", e.o.Site).Str("peer", e.router.sites[believed.site].Name).
			Msg("the entry point of another site does not know this one: their entry.peer_key_file, or without one their privacy.user_key, must be the same")
	}
	if x.split.calls {
		e.noAnswerFrom(x.to, believed.site, true)
		if next, fell := x.fallBackFrom(resp, true, reasonPeerKey); fell { // it was not sent
			return next, false
		}
	}
	next = place{site: noSite}
	if x.to.owns {
		next = x.word(resp.Header)
	}
	_ = resp.Body.Close() // nothing that it says matters
	if next.known && (!believed.known || next.version > believed.version) {
		x.toSite = ""
		x.failed(x.attempt)
		x.attempt, x.asked = nil, false // it has its row
		return next, false
	}
	x.kind = kindFailed
	if x.split.calls {
		x.refuse(http.StatusServiceUnavailable, reasonPeerKey, "the site that is to serve this does not take calls from this one")
		return next, true
	}
	x.refuse(http.StatusLoopDetected, reasonPeerKey, "the sites of this service disagree about where the data is")
	return next, true
}

func (x *exchange) ask(asking bool) {
	x.asks.Lock()
	defer x.asks.Unlock()
	x.asking = asking
}

func (x *exchange) observe(a *upstream.Attempt) { x.failed(a) }

// word reads where an answer of 421 says the data is, and learns it. A site that
// nobody configured is none.
func (x *exchange) word(h http.Header) place {
	site := first(h, headerSite)
	version, err := strconv.ParseUint(first(h, headerVersion), 10, 64)
	i, ok := x.e.router.index[site]
	if !ok {
		x.e.m.ignored("location", "site")
		return place{site: noSite}
	}
	if x.owner != "" && err == nil {
		x.e.o.Locations.Learn(x.owner, site, version)
		if x.e.router.redirects {
			x.e.recent.add(x.owner, x.e.o.Clock.Now(), x.e.o.Hold)
		}
	}
	return place{site: i, version: version, known: err == nil}
}

// prepareFor makes the request ready for a server of the site, or for a peer.
func (x *exchange) prepareFor(peer bool) bool {
	h := x.out.Header
	if x.body != nil {
		b, err := x.body.open()
		if err != nil {
			x.fail(err)
			return false
		}
		x.out.Body = b
	}
	x.hops = 0
	if !peer {
		for _, name := range [...]string{headerHop, headerPeer, headerUser, headerOwner, headerVersion, headerTo, headerComponent} {
			delete(h, name)
		}
		return true
	}
	e, v := x.e, &x.values
	x.hops = 1
	v.hop[0] = e.o.Site
	h[headerHop] = v.hop[:]
	if len(e.o.PeerKey) > 0 {
		h[headerPeer] = e.peerKey
	}
	set(h, headerUser, encodeID(x.user), &v.user)
	set(h, headerOwner, encodeID(x.owner), &v.owner)
	version := ""
	if x.at.known {
		version = strconv.FormatUint(x.at.version, 10)
	}
	set(h, headerVersion, version, &v.at)
	set(h, headerComponent, encodeID(x.from), &v.from)
	if x.split.calls {
		set(h, headerTo, x.to.name, &v.to)
	}
	return true
}

// set sets a header, or deletes it for "".
func set(h http.Header, name, value string, in *[1]string) {
	if value == "" {
		delete(h, name)
		return
	}
	in[0] = value
	h[name] = in[:]
}
