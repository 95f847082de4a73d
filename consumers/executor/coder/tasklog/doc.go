// Package tasklog turns what a coder does into events (DESIGN §3.1): each chunk task
// that ran, each request of a client, and once a second how its queue stands.
//
// # Rows
//
// A task is a row of request/1 with an outcome: op, to_component = the coder, to_site,
// to_server = the store, bytes that were asked for, n and k, wait_us = how long its
// request had waited for a connection, service_us = its delay. Such rows enter the
// rollup storage and no other. A task of a repair, or of another work that no client
// waits for, has class background and neither n nor k: it is no part of a coded request,
// and the delay model is not fitted to it.
//
// A request of a client is a row without an outcome: op, bytes, status, wait_us =
// until its first task had a connection, service_us = from then to its last byte.
//
// A row's time is when it is logged. A cancelled task whose function takes long to
// return is thus in time however long ago it was told to end, and its service_us ends
// there: it would have lasted at least as long.
//
// The queue is a row of gauge/1: site, server = the coder, backlog = requests that wait,
// in_service = requests that have been admitted and not ended.
//
// Rows have no owner, user or trace, and lie on partition 0: an aggregator adds up
// several million tasks a second on one partition, a coder makes some thousands.
//
// # States and failures
//
// Nothing here waits or fails: rows are handed to infra/publisher, which spools while
// the bus is away and counts what it drops by reason. What no row can hold (a code
// beyond 255 chunks, a size beyond 128 GiB) is counted there as invalid. [Log.Run] logs
// gauges until its context ends; the rest works without it. A row costs no allocation.
package tasklog
