// Package door stands in front of HTTP servers that answer questions of many
// clients (DESIGN §6): who may come in, who that is, and how much each may ask.
//
//	Options.Check  loopback, or a token, or public
//	Door.Enter     a token of ours; without one, loopback names only
//	Rates.Take     a rate a client and one for all, in bounded memory
//	Server         limits for headers, connections and slow clients, and an end
//	HasTag         who has the answer already
//	Refusal, Reply what is said to whom may not come in, and an answer in JSON
//
// A client is an address (of IPv6 the first 64 bits), or a token if there are
// several. A Door has no state; Rates hold what clients have left, and forget the
// ones that gain least by it when there are too many. Nothing here fails once
// Check has passed.
package door
