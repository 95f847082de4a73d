// Package pseudonym turns what names a person into a name that tells nothing
// without the key (DESIGN §3.1: client addresses never travel; §6).
//
// A pseudonym is HMAC-SHA256 under the installation's key, cut to 128 bits, in
// 32 hexadecimal digits: nobody without the key can try out the four billion
// addresses. The same value and key give the same pseudonym everywhere, so that
// a live entry point and an imported access log speak of one user.
//
// A [Hasher] has no state that a caller can see and is safe for concurrent use.
// The only failure is a missing key, at construction.
package pseudonym
