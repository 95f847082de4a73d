// Package backend is a web server of a pool, for demonstrations: it serves files and pages,
// has so many workers and no more, and takes its time.
//
// A request takes a time that grows with the size of its answer, more so where a program
// makes it (a page) than where it is a file, times how slow the machine is. Of that time the
// server is waiting for a timer, so that a machine with few processors can play many
// servers. Workers take requests in the order in which they came: what comes when all are
// busy waits inside the server, where nobody sees it, and so a loaded server gets slower.
//
// # Control
//
// At an address of its own ([Server.Control]) it tells its [State] and can be made slower.
// It counts what it has at the same time: that is what "never above M" is judged by.
//
// # Failures
//
// A path that nobody knows is answered with 404. A client that goes frees its worker.
package backend
