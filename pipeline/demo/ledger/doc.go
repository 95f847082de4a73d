// Package ledger keeps the books of what a service has promised its clients, and
// compares them with what its stores hold in the end.
//
// A client enters each write before it is sent, and what became of it: it was
// acknowledged (it must be there for ever, once), refused (it must not be there),
// or nobody knows (a connection broke: it may be there, at most once). A read asks
// beforehand how many writes must be visible to it.
//
// [Ledger.Check] is a pure function of the books and of what was found. It knows
// nothing of how data moves: that an owner has one live copy and that this one
// holds exactly what was acknowledged is all that it asks.
package ledger
