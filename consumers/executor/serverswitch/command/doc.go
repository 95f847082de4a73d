// Package command is a serverswitch.Backend that calls programs, without a shell.
//
// A program is called with its arguments, in which {server}, {host}, {port}, {zone},
// {site} and {action} stand for what it is about, and with the same in PENSTOCK_SERVER,
// PENSTOCK_HOST, PENSTOCK_PORT, PENSTOCK_ZONE, PENSTOCK_SITE, PENSTOCK_URL and
// PENSTOCK_ACTION (on, off or status); for on and off also PENSTOCK_EPOCH, that of the
// table, and PENSTOCK_KEY, which is the same for all tries of one switch. It has no input.
//
// Exit code 0 is success. A program for status ends with 0 if the server is on and with 1
// or 3 (as init scripts do) if it is off; it is off too if all that it writes is off. Any
// other code says nothing. What a program writes besides is for its failure's text, of which
// the end is kept.
//
// States: there are none. A program runs in a process group of its own; when its time is
// over, or the process is being stopped, the group is killed, so that nothing that it has
// started goes on by itself, unless it has left the group on purpose. What a program that
// ends in time leaves running is left alone: it may be the server. Its output should go
// elsewhere, for ours is closed a second later.
//
// If the process itself is killed, the program is too, on Linux: what it has started is not.
//
// Failures: ErrFailed with the exit code and the last words.
package command
