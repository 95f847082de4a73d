// Package picker lets an application follow the split without a proxy of ours
// (DESIGN §4.2): it asks the pull API in the background, and picks in memory.
//
//	p, err := picker.Open(ctx, picker.Options{URL: "http://127.0.0.1:8091", Component: "web", Site: "us-east"})
//	client := &http.Client{Transport: p.Transport(nil)}
//	…
//	res, err := client.Get("http://cart/items") // goes to a server of cart, at the site that the split says
//
// Who doesn't speak HTTP picks by itself, and says how it went:
//
//	c := p.Pick("cart")
//	err := call(c.Server)
//	c.Done(err)
//
// A pick takes no lock, allocates nothing and asks nobody; only the first for a
// component begins to follow it. Sites take turns by their shares, and the servers of
// a site one after the other; PickFor gives the same key the same server as long as
// the shares and the servers allow, PickWrite the site for writes.
//
// # States
//
// Of a component: unasked; known from Options.Fallback alone, at this site; known
// from the API; known from what the API last said, while it is away, for however
// long that is. An answer with an older epoch than the last is refused (several
// servers of the API need not be in step) until nothing else was told for a minute:
// then the bus has begun anew.
//
// Of a server: in; out after Failures failures in a row, or at once if nothing
// listens there, for Out, which doubles each time up to MaxOut; then on trial, when
// one failure puts it out again and one success puts it in. A site of which all
// servers are out gets no requests while another has a share. If all are out
// everywhere they are picked all the same: nothing at all is worse (PROBLEMS P31).
//
// # Failures
//
// The API never delays or fails a pick. What it says that can't be used is counted
// by reason, shown by State, and what was known goes on. Where nothing is known a
// Choice has no Server.
package picker
