package window

import "time"

// Service holds what servers did and what waits in front of them (DESIGN §3.2, §4.3): the
// requests that ended, by site, server and class, and the queues of dispatchers, by site
// and server.
//
//	site              to_site
//	server            to_server; absent of a request that no server got
//	class             that of the requests; absent of a queue
//	requests          how many
//	errors            those of them that failed
//	wait_us           sum of the waits that are known
//	served            how many have a service time that is known
//	service_us        sum of them
//	limited           how many have a limit, so that it is known by how much they missed it
//	overdue_us        sum of that
//	late              how many missed it
//	gauges            how often a queue was looked at
//	queued            sum of the waiting requests that were seen
//	queued_most       the greatest number of them
//	in_service        sum of the requests in service that were seen
//	in_service_most   the greatest number of them
//	queued_static     sum of the waiting requests for what is static
//	queued_dynamic    sum of those for what is dynamic
//	potential_us      sum of by how much waiting requests would miss their limits
//	potential_most    the greatest of that
//
// A request has a row if it names its server or knows its limit: of what others do not
// tell, nothing could be decided. A request whose limit is not known is none that was in
// time. A queue's row has a site and perhaps a server, and no class; requests without a
// class have that key too, and share the row.
var Service = &Rollup{
	Name: "service", Group: Fast, Width: time.Second,
	Keys: []string{"site", "server", "class"},
	Values: []Value{
		{"requests", Sum, Int64},
		{"errors", Sum, Int64},
		{"wait_us", Sum, Int64},
		{"served", Sum, Int64},
		{"service_us", Sum, Int64},
		{"limited", Sum, Int64},
		{"overdue_us", Sum, Int64},
		{"late", Sum, Int64},
		{"gauges", Sum, Int64},
		{"queued", Sum, Int64},
		{"queued_most", Max, Int64},
		{"in_service", Sum, Int64},
		{"in_service_most", Max, Int64},
		{"queued_static", Sum, Int64},
		{"queued_dynamic", Sum, Int64},
		{"potential_us", Sum, Int64},
		{"potential_most", Max, Int64},
	},
}
