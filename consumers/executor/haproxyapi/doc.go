// Package haproxyapi asks a running HAProxy through its runtime API, at a UNIX socket or
// over TCP, at level admin.
//
// States: there are none; each question is a connection of its own, so that there is
// nothing to restore after one that broke off.
//
// Failures: a socket that can't be reached, or an answer that breaks off, is
// ErrUnreachable; what HAProxy refuses is ErrRefused; what can't be read is ErrFormat.
package haproxyapi
