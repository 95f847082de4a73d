package bus

import "time"

// CheckVersion is for the table of versions.
var CheckVersion = checkVersion

// SetGossip sets how long the servers of a cluster are waited for.
func SetGossip(b *Bus, d time.Duration) { b.gossip = d }

// Passed is the sequence up to which a reader has seen all of its own.
func Passed(r *Reader) uint64 { return r.passed.Load() }
