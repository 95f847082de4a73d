// Package testserver runs the real servers that tests need, on free ports of the
// loopback interface, with their files in a temporary folder: stores, one of a
// kind for a test binary, and the proxies that ours is measured beside (NGINX,
// HAProxy), one for each call, with wrk to load them. Of our own S3 server the clients
// are foreign: command-line programs (rclone, s3cmd), run once a call.
//
// # States
//
// A server is started by the first test that asks for it and shared by the
// others, which keep apart by a bucket or database of their own. What is needed
// for it is installed before, once a machine, into the user's cache; several
// test binaries that start at once wait for the one that installs. A server ends
// with its test binary, also when that is killed: it is guarded by a process
// that reads from a pipe whose other end the test binary holds.
//
// # Failures
//
// A test that can't get its server fails; it is never skipped, since a suite
// that ran against nothing proves nothing.
package testserver
