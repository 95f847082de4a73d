// Package notes is the small service of the demonstrations: notebooks, each of
// which belongs to an owner and is kept by one of several sites.
//
//	GET  /u/{owner}/notes   the latest notes and how many there are; ?last=N
//	POST /u/{owner}/notes   one more note; 201 once it is as durable as the store
//	                        promises
//	GET  /health            200
//
// It is written as any service would be that runs behind Penstock, and knows of it
// only this: a copy of the data that may not be written to any more (or not yet)
// is answered with 421 and the headers Penstock-Site and Penstock-Version, which
// say where the data is; the entry point takes the request there. Reads are
// answered by writable copies only too, so that nobody reads what has been
// overtaken elsewhere. An owner of whom there is no copy is 404: notebooks are
// made by [Create], never by a request that went astray. Server-Timing says how
// long the service itself took.
//
// Failures: what the store can't do is 500, logged, and not acknowledged. A write
// that was answered with an error other than 500 has not been done.
package notes
