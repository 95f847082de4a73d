package pool

import "time"

// Options of a pool. The zero values are the defaults, but for Classes.
type Options struct {
	// Policy that places requests. Defaults to A1.
	Policy Policy
	// Classes of requests, at least one.
	Classes []Class
	// Queue is the most requests that wait at one server. Defaults to 1,000.
	Queue int
	// Ramp is how long a new server has less than its fair share. Defaults to
	// 10 s; negative: no ramp.
	Ramp time.Duration
	// Seed of the drawn policies (p2c, peak-ewma, prequal): requests of equal number
	// draw equally.
	Seed uint64
	// Elapsed counts how long the requests in service run already: estimates of a
	// server where they run longer than estimated are multiplied by its Slowdown.
	// It is no part of the papers; without it a policy is what its source says.
	Elapsed bool
	// FreeFirst considers only servers with a free slot while there are any. It
	// matters to A3, whose score, to the letter, prefers a server with requests
	// waiting to an idle one. It is no part of the paper.
	FreeFirst bool
}
