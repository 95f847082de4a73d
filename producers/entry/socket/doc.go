// Package socket reads and writes TCP connections with as little work as a proxy
// can do it.
//
// A proxy of small answers spends most of its time in system calls. Package net
// tells the scheduler before and after each of them that its thread may be gone
// for long; when it is for more than 20 µs the scheduler has another thread take
// over, which costs more than the call. A socket that doesn't block is never gone
// for longer than it has work to do, so on Linux this package doesn't say so. What
// a socket can't do at once is waited for as package net does, deadlines included.
// On other systems, and under the race detector, which learns from package syscall
// what happens before what, the calls are that package's.
package socket
