package entry

import (
	"errors"
	"net/http"

	"penstock/infra/shares"
	"penstock/producers/entry/upstream"
	"penstock/schemas/event"
)

// Words of Penstock-Reason, which peers tell each other in answers of their own.
const (
	reasonNoComponent  = "no-component"  // the peer knows no such component
	reasonNoServer     = "no-server"     // it has no server of it that takes requests
	reasonNoConnection = "no-connection" // none could be reached
	reasonBusy         = "busy"          // they have as many requests as they may, and too many wait
	reasonServer       = "server"        // one was asked and gave no answer
	reasonTimeout      = "server-timeout"
	reasonNoWay        = "no-way"
	reasonMoving       = "moving" // the owner's data is being moved
	reasonPeerKey      = "peer-key"
	reasonPeer         = "peer" // the peer itself gave none
)

// saidReason is why a peer answered by itself, "" if it didn't. What is none of the
// words above counts as reasonPeer, so that whatever stands there makes no new series.
func saidReason(h http.Header) string {
	switch said := first(h, headerReason); said {
	case "", reasonNoComponent, reasonNoServer, reasonNoConnection, reasonBusy, reasonServer, reasonTimeout, reasonNoWay:
		return said
	}
	return reasonPeer
}

// splitting is what a request is while its site follows from the shares.
type splitting struct {
	calls   bool // it is one
	choice  shares.Choice
	chosen  int    // the site, by index
	session string // the site of the client's session, "" if it has none
	keyed   bool   // the session is a key of the client's own
	spare   bool   // another site may be tried
	fell    bool   // another site is to be tried
	probe   int    // the site that gets a copy; noSite if none does
}

// maySplit reports whether shares choose the site of a request for Options.Component:
// not if the location of its owner is known, or a rule says where owners are whose
// location isn't.
func (x *exchange) maySplit(p place) bool {
	e := x.e
	return e.o.Shares != nil && x.hop == nil && !x.marked && (x.owner == "" || !p.known && e.o.Unknown == UnknownLocal)
}

// mayServe reports whether the request may be served at a site.
func (x *exchange) mayServe(site int) bool {
	if !x.to.may(site) {
		return false
	}
	if x.owner == "" || x.e.o.Residency == nil {
		return true
	}
	allowed := x.e.o.Residency(x.owner)
	return allowed == nil || site < len(allowed) && allowed[site]
}

// enter chooses the site. It returns false if the owner's data may not be there.
func (x *exchange) enter() bool {
	e, s := x.e, &x.split
	s.chosen, s.probe = e.router.own, noSite
	if e.o.Shares == nil {
		return true
	}
	link := x.link()
	site, key := x.session()
	s.session, s.keyed = site, key != ""
	if key == "" {
		key = x.owner // its requests stay together
	}
	i := x.writesAt()
	if i != noSite {
		x.enterAt(i)
	} else {
		s.choice = e.o.Shares.Enter(link, key, site, x.op == event.Write)
		var ok bool
		if i, ok = e.router.index[s.choice.Site]; !ok {
			e.m.ignored("share", "site")
			x.leave()
			i = e.router.own
		}
	}
	if x.owner != "" && !x.mayServe(i) {
		x.leave()
		return false
	}
	s.chosen = i
	e.m.picked(x.to, i)
	if s.choice.Known && !x.probe {
		x.orderProbe(link)
	}
	return true
}

// writesAt is where the request goes because it writes and the configuration, not
// the table in force, says where writes go; else noSite.
func (x *exchange) writesAt() int {
	if x.op != event.Write || x.to.writesAt == noSite {
		return noSite
	}
	if row := x.tableRow(); row != nil && row.WritesAt != "" {
		return noSite
	}
	return x.to.writesAt
}

// leave ends what enter began. It may be called again.
func (x *exchange) leave() {
	x.split.choice.Leave()
	x.split.choice = shares.Choice{}
}

// call sends the request to the site that the shares choose, and where that has
// nobody to answer to one other. answered is false if its data is elsewhere: next
// says where.
func (x *exchange) call() (next place, answered bool) {
	if !x.enter() {
		return x.find(), false
	}
	defer x.leave()
	x.to.budget.Request(x.start)
	x.split.calls, x.split.spare = true, true
	next, answered = x.callAt(x.split.chosen)
	if !answered && x.split.fell {
		x.split.fell = false
		next, answered = x.callAt(next.site)
	}
	x.split.calls = x.split.calls && answered // what follows an owner is no call any more
	return next, answered
}

// callAt makes one attempt at a site.
func (x *exchange) callAt(site int) (next place, answered bool) {
	e := x.e
	x.at = place{site: site}
	if site == e.router.own {
		return x.callHere()
	}
	if peer := e.router.sites[site].Peer; peer != nil {
		return x.send(peer, true)
	}
	if next, fell := x.fallBack(true, reasonNoWay, nil); fell {
		return next, false
	}
	x.kind, x.asked, x.toSite = kindFailed, true, e.router.sites[site].Name
	x.refuse(http.StatusServiceUnavailable, reasonNoWay, "the site that may serve this can't be reached from here")
	return place{site: noSite}, true
}

// callHere sends the request to a server of the own site.
func (x *exchange) callHere() (next place, answered bool) {
	x.at.site = x.e.router.own
	if x.to.local != nil {
		return x.serveHere(x.at)
	}
	if next, fell := x.fallBack(true, reasonNoServer, nil); fell {
		return next, false
	}
	x.asked = !x.marked || x.hop != nil // else whoever writes the mark wanted it served here
	x.fail(upstream.ErrNoServer)
	return place{site: noSite}, true
}

// lost decides what becomes of a call that got no answer from a pool: fell, if
// another site is to be tried.
func (x *exchange) lost(err error, peer bool) (next place, fell bool) {
	if x.r.Context().Err() != nil || errors.Is(err, upstream.ErrRequestBody) || errors.Is(err, upstream.ErrRequest) {
		return next, false
	}
	unsent := errors.Is(err, upstream.ErrNoServer) || errors.Is(err, upstream.ErrConnect)
	if errors.Is(err, upstream.ErrBusy) { // which says nothing against the servers
		return x.fallBack(true, reasonBusy, x.attempt)
	}
	if !peer {
		x.e.noAnswerFrom(x.to, x.e.router.own, errors.Is(err, upstream.ErrNoServer))
		if !unsent {
			return next, false // the pool has tried what there is to try
		}
		reason := reasonNoServer
		if errors.Is(err, upstream.ErrConnect) {
			reason = reasonNoConnection
		}
		return x.fallBack(true, reason, x.attempt)
	}
	x.e.noAnswerFrom(x.to, x.at.site, false)
	return x.fallBack(unsent, reasonPeer, x.attempt)
}

// judge notes who answered a call, and decides what becomes of one that a peer has
// answered by itself.
func (x *exchange) judge(resp *http.Response, peer bool) (next place, fell bool) {
	reason, unsent := "", false
	if peer {
		reason = saidReason(resp.Header)
	}
	switch reason {
	case reasonNoComponent, reasonNoServer, reasonNoConnection:
		unsent = true
	case reasonServer, reasonTimeout:
	case reasonBusy:
		x.e.answeredBy(x.to, x.at.site) // it is there
		return x.fallBackFrom(resp, true, reason)
	default:
		x.e.answeredBy(x.to, x.at.site)
		return next, false
	}
	x.e.noAnswerFrom(x.to, x.at.site, reason == reasonNoComponent || reason == reasonNoServer)
	return x.fallBackFrom(resp, unsent, reason)
}

// fallBackFrom is fallBack after an answer that is of no use.
func (x *exchange) fallBackFrom(resp *http.Response, unsent bool, reason string) (next place, fell bool) {
	next, fell = x.mayFallBack(unsent, reason)
	if fell {
		_ = resp.Body.Close() // nothing that it says matters
		x.fallen(reason, x.attempt)
	}
	return next, fell
}

// fallBack lets another site be tried, once, if the request may be sent again, or
// was not sent. The attempt that failed gets its row.
func (x *exchange) fallBack(unsent bool, reason string, failed *upstream.Attempt) (next place, fell bool) {
	next, fell = x.mayFallBack(unsent, reason)
	if fell {
		x.fallen(reason, failed)
	}
	return next, fell
}

// mayFallBack finds another site to try. The budget keeps a fault from making more
// work for servers than there was; a peer that knows nothing of this entry point
// gave its servers none, and will not for as long as nobody changes a key.
func (x *exchange) mayFallBack(unsent bool, reason string) (next place, may bool) {
	next.site = noSite
	if !x.split.spare {
		return next, false
	}
	x.split.spare = false
	site, refused := noSite, ""
	if x.body != nil && !x.body.again() || !unsent && !upstream.Repeatable(x.out) {
		refused = "not-repeatable"
	} else if site = x.another(); site == noSite {
		refused = "no-site"
	} else if reason != reasonPeerKey && !x.to.budget.Retry(x.e.o.Clock.Now()) {
		refused = "budget"
	}
	if refused != "" {
		x.e.m.fallback(x.to, false, refused)
		return next, false
	}
	x.enterAt(site)
	return place{site: site}, true
}

// fallen makes the row of the attempt that failed and gets ready for the next one.
func (x *exchange) fallen(reason string, failed *upstream.Attempt) {
	e := x.e
	e.m.fallback(x.to, true, reason)
	if failed == nil {
		now := e.o.Clock.Now()
		failed = &upstream.Attempt{Queued: now, Done: now}
		e.noAnswerFrom(x.to, x.at.site, true)
	}
	x.failed(failed)
	x.attempt, x.asked, x.toSite, x.toServer, x.timings = nil, false, "", "", timings{}
	x.split.fell = true
}

// another chooses the site to try when one has failed: the own one if it has servers,
// else the one with the greatest share. Where writes have a site no other may take
// them.
func (x *exchange) another() int {
	e, failed, own := x.e, x.at.site, x.e.router.own
	row := x.tableRow()
	if x.op == event.Write && (x.to.writesAt != noSite || row != nil && row.WritesAt != "") {
		return noSite
	}
	if failed != own && x.to.local != nil && x.mayServe(own) {
		return own
	}
	if row == nil {
		return noSite
	}
	site, most := noSite, 0.0
	for _, r := range row.Ratios {
		i, ok := e.router.index[r.Site]
		if ok && i != failed && i != own && r.Share > most && e.router.sites[i].Peer != nil && x.mayServe(i) {
			site, most = i, r.Share
		}
	}
	return site
}

// tableRow is what the table in force says of the request's link; nil if it says nothing.
func (x *exchange) tableRow() *shares.Row {
	if x.e.o.Shares == nil {
		return nil
	}
	link := x.link()
	t, _ := x.e.o.Shares.Table(link.From)
	for i := range t.Rows {
		if t.Rows[i].FromSite == link.FromSite && t.Rows[i].To == link.To {
			return &t.Rows[i]
		}
	}
	return nil
}

// enterAt ends what enter began and begins the same at another site, so that who
// drains that waits for this request too; if the shares give it any.
func (x *exchange) enterAt(site int) {
	x.leave()
	if x.e.o.Shares == nil {
		return
	}
	link, name := x.link(), x.e.router.sites[site].Name
	if _, ok := x.e.o.Shares.Stay(link, name); !ok {
		return
	}
	if x.split.choice = x.e.o.Shares.Enter(link, "", name, false); x.split.choice.Site != name {
		x.leave() // the table has changed
	}
}

// noAnswerFrom notes that a replica did not answer, sure that none can be had; of
// one whose pool knows how it is, that is asked.
func (e *Entry) noAnswerFrom(c *component, site int, sure bool) {
	if site == e.router.own && c.knows() {
		e.looksAt(c.replicas[site], c.local)
		return
	}
	e.failed(c.replicas[site], sure)
}

// answeredBy notes that a replica answered.
func (e *Entry) answeredBy(c *component, site int) {
	if site != e.router.own || !c.knows() {
		e.succeeded(c.replicas[site])
	}
}

// knows reports whether the pool of the own site knows how its servers are.
func (c *component) knows() bool {
	_, ok := c.local.(usable)
	return ok
}
