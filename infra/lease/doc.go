// Package lease lets one of several processes do what only one may do at a time: it holds
// a key of KV members (DESIGN §3), which goes away by itself 5 s after its holder was last
// heard of.
//
//	waiting ──key free──▶ holding ──not renewed in time──▶ waiting
//	                         └──context ends, or work──▶ ended, key given back
//
// A holder renews the key every second, by compare and set, until its work has ended: one
// that is stopped keeps the key for as long as its work takes to stop. If no renewal has
// succeeded for [Patience], the work's context ends, with the cause [ErrLost]: by the time
// that the key is gone, and another may take it, the work has been told to stop. What it
// takes to stop beyond the second that is left then, it may overlap with another's: it has
// to bear that, as what is called at least once does. Only one of two holders of one name
// holds it: the same process started twice is two.
//
// Who waits says so each second, in a key of its own ([StandingBy]), and logs once for whom.
//
// The key's value says who holds it, and what the holder has to say: those who only look
// read it with [Read].
//
// Failures: a bus that can't be reached is waited for; without it nobody new gets the
// lease. Run fails only with what the work returns.
package lease
