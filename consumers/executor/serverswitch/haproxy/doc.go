// Package haproxy is a serverswitch.Backend for servers that a HAProxy gives requests:
// off is HAProxy's state maint, on is ready, and a drain is its state drain, in which a
// server keeps its running requests. A server with a cookie is put into maint at once,
// in which running requests go on too and its sessions get another server.
//
// A server is one of a backend of HAProxy, by its name there, or else by its address.
//
// States: they live in HAProxy's memory; after a reload without a state file they are
// those of its configuration, which the switch sees at its next look and changes again.
// Weights, health and what else an operator has set stay.
//
// Failures: those of haproxyapi; ErrAbsent for a server that the backend doesn't have.
package haproxy
