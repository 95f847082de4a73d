package xds

import (
	"context"
	"fmt"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	statusv3 "google.golang.org/genproto/googleapis/rpc/status"
)

// stream is what is known of a client's stream.
type stream struct {
	sent map[nonce]string // version by nonce, not answered yet
	subs map[string]*sub  // by type
}

type nonce struct{ url, nonce string }

// sub is what a stream asks for of a type, and has acknowledged.
type sub struct {
	names map[string]bool
	all   bool
	acked string
}

// streamID tells streams of the two variants apart, which are numbered alike.
type streamID struct {
	delta bool
	id    int64
}

// answer is what a client says to a response, and asks for.
type answer struct {
	url, nonce string
	refusal    *statusv3.Status
	subscribe  func(s *sub)
}

// callbacks hears what clients and server say to one another.
type callbacks struct{ t *Target }

func (callbacks) OnStreamOpen(context.Context, int64, string) error      { return nil }
func (callbacks) OnDeltaStreamOpen(context.Context, int64, string) error { return nil }
func (callbacks) OnFetchRequest(context.Context, *discoveryv3.DiscoveryRequest) error {
	return nil
}
func (callbacks) OnFetchResponse(*discoveryv3.DiscoveryRequest, *discoveryv3.DiscoveryResponse) {}

func (c callbacks) OnStreamClosed(id int64, _ *corev3.Node)      { c.t.closed(streamID{false, id}) }
func (c callbacks) OnDeltaStreamClosed(id int64, _ *corev3.Node) { c.t.closed(streamID{true, id}) }

func (c callbacks) OnStreamRequest(id int64, r *discoveryv3.DiscoveryRequest) error {
	return c.t.heard(streamID{false, id}, answer{r.GetTypeUrl(), r.GetResponseNonce(), r.GetErrorDetail(), func(s *sub) {
		s.names = map[string]bool{}
		for _, name := range r.GetResourceNames() {
			s.names[name] = true
		}
		s.all = len(s.names) == 0 || s.names["*"]
	}})
}

func (c callbacks) OnStreamDeltaRequest(id int64, r *discoveryv3.DeltaDiscoveryRequest) error {
	return c.t.heard(streamID{true, id}, answer{r.GetTypeUrl(), r.GetResponseNonce(), r.GetErrorDetail(), func(s *sub) {
		if len(s.names) == 0 && len(r.GetResourceNamesSubscribe()) == 0 && r.GetResponseNonce() == "" {
			s.all = true
		}
		for _, name := range r.GetResourceNamesSubscribe() {
			s.names[name] = true
			s.all = s.all || name == "*"
		}
		for _, name := range r.GetResourceNamesUnsubscribe() {
			delete(s.names, name)
			s.all = s.all && name != "*"
		}
	}})
}

func (c callbacks) OnStreamResponse(_ context.Context, id int64, _ *discoveryv3.DiscoveryRequest, r *discoveryv3.DiscoveryResponse) {
	c.t.said(streamID{false, id}, nonce{r.GetTypeUrl(), r.GetNonce()}, r.GetVersionInfo())
}

func (c callbacks) OnStreamDeltaResponse(id int64, _ *discoveryv3.DeltaDiscoveryRequest, r *discoveryv3.DeltaDiscoveryResponse) {
	c.t.said(streamID{true, id}, nonce{r.GetTypeUrl(), r.GetNonce()}, r.GetSystemVersionInfo())
}

func (t *Target) stream(id streamID) *stream {
	s := t.streams[id]
	if s == nil {
		s = &stream{sent: map[nonce]string{}, subs: map[string]*sub{}}
		t.streams[id] = s
	}
	return s
}

func (t *Target) said(id streamID, n nonce, version string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stream(id).sent[n] = version
}

func (t *Target) closed(id streamID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.streams, id)
	t.news()
}

// heard takes note of what a client subscribes to, acknowledges or refuses. Its
// error ends the stream.
func (t *Target) heard(id streamID, a answer) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.news()
	s := t.stream(id)
	b := s.subs[a.url]
	if b == nil {
		b = &sub{names: map[string]bool{}}
		s.subs[a.url] = b
	}
	a.subscribe(b)
	n := nonce{a.url, a.nonce}
	version, answered := s.sent[n]
	if !answered {
		return nil
	}
	delete(s.sent, n)
	if a.refusal == nil {
		b.acked = version
		t.confirm()
		return nil
	}
	return t.refused(a.url, version, a.refusal.GetMessage())
}

// refused has the last good snapshot take the place of one that a client refuses.
func (t *Target) refused(url, version, message string) error {
	switch {
	case version != t.current.versions[url]:
		return nil // another has taken its place already
	case version == t.good.versions[url]:
		t.o.Metrics.Count(Refused, "good", 1)
		return fmt.Errorf("%s version %s: %w: %.400s", url, version, ErrStream, message)
	}
	t.o.Metrics.Count(Refused, "unconfirmed", 1)
	err := fmt.Errorf("%w: %.400s", ErrRefused, message)
	t.rejected[t.last.From] = rejection{t.carried(t.last), err}
	t.tables, t.draining, t.current = t.goodTables, t.goodDrains, t.good
	return t.offer()
}

// confirm makes the current snapshot the good one if all who ask for what it
// changed have acknowledged it, and somebody has.
func (t *Target) confirm() {
	if t.current == t.good {
		return
	}
	if waiting, done := t.waiting(); waiting == 0 && done > 0 {
		t.good, t.goodTables, t.goodDrains = t.current, t.tables, t.draining // nobody changes these maps
	}
}

// waiting counts the subscriptions to what is changed: those that have not
// acknowledged it, and those that have.
func (t *Target) waiting() (waiting, done int) {
	for url, version := range t.current.versions {
		if version == t.good.versions[url] {
			continue
		}
		changed := t.current.changed(t.good, url)
		for _, s := range t.streams {
			b := s.subs[url]
			if b == nil || !b.all && !slices.ContainsFunc(changed, func(name string) bool { return b.names[name] }) {
				continue
			}
			if b.acked == version {
				done++
			} else {
				waiting++
			}
		}
	}
	return waiting, done
}

// news wakes those who wait for clients.
func (t *Target) news() {
	close(t.heardOf)
	t.heardOf = make(chan struct{})
}
