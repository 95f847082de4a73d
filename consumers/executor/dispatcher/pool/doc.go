// Package pool is the second-level switch of one zone (DESIGN §4.3, PAPERS §2.4): it
// places each request at a server, keeps a line in front of each, and starts what is
// next where fewer than M are in service.
package pool
