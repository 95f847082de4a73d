// Package address reads network addresses as servers, operators and proxies write
// them: which hosts only this machine reaches, and who a client is that comes through
// proxies (DESIGN §6: servers bind to loopback unless told otherwise; trusted proxies
// are named before what they say counts).
//
// It has no state, allocates nothing, and does not fail: what is no address is none.
package address
