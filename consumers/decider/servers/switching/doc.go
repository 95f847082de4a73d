// Package switching is the rule by which the servers of a site are turned on and off
// (PAPERS §2.5, DESIGN §4.3). It is pure: plain numbers in, a decision out. The policy of
// package servers drives it with windows of the rollup service, and the simulation of the
// paper's system with its own figures.
//
// Time is int64 ns, since 1970 or since 0; penalties are in cost units, costs in cost
// units per second, loads in places: a server has Slots of them, and so many requests are
// in service at it at most.
//
// # On
//
// One more server, or more if the load asks for them, when
//
//   - the mean penalty per second is above what a server costs per second (PAPERS §2.5), over
//     Hold periods and over half a cooldown: a burst that cost less than a server will before
//     it can be turned off again calls for none, or
//   - the potential penalty of what waits is above Critical (PAPERS §2.5), or
//   - with Forecast, the load that is expected while a server starts does not fit what runs.
//
// A server that is starting counts as running. While one is, or while a queue is being
// worked off, no other is turned on if what runs has room for the load and what waits will
// cost less than another server would until it could be turned off again.
//
// # Off
//
// One server, when for Hold periods running the mean penalty was below Hysteresis times
// its cost, the potential penalty below Hysteresis times Critical, and the others would be
// below the ceiling of utilisation without it; with Forecast also those of what is
// expected. It is to be drained before it is stopped, which is the executors' part.
//
// # The ceiling
//
// Places are no measure of a machine: of two servers with as many, one may be slow at half
// of them. So the utilisation at which penalties begin is learned. The ceiling begins at
// Utilisation, falls towards the utilisation at which penalties called for a server, and
// rises where it is passed without any, and by itself over half a day. The forecast turns a
// server on where the expected load would pass it; and for off it stands in place of
// Utilisation where it is lower, so that what was turned off too early is not turned off
// again at the same load.
//
// # What keeps it from flapping (P35)
//
//   - After a change of how many run, there is none for Cooldown, whichever way. Only a real
//     change starts it.
//   - A server that was turned on is not turned off within Cooldown, nor the other way round.
//   - Figures are means over Hold periods; the penalty must also be above the cost, and the
//     load below the ceiling, in means over a part of a cooldown.
//
// Two things pass the cooldown, because they keep a number instead of changing it: a server
// in place of one that failed, and servers up to Least.
//
// # Zones
//
// The next server is one of the zone with the highest penalty, then potential penalty,
// then utilisation, that has one; in it the cheapest place, by config order. The next to go
// is one of the zone with the lowest utilisation, in it the dearest place. Weights of zones
// are by the places that are on, times the speed that was measured, and change by at most
// WeightStep a period; a zone with no server on has none.
//
// # Failures
//
// New returns every fault of the options ([ErrOptions]). Nothing else fails: without
// figures (P34) nothing changes, and without a server to turn on the decision says so.
package switching
