// Package haproxy is a router.Target that sets the weights of servers of a running
// HAProxy through its runtime API, at a UNIX socket or over TCP, at level admin.
//
// A Backend of the options says which backend of HAProxy carries the calls of a
// link and which of its servers stand at which site. Only these servers are ever
// set; what else the HAProxy has stays as it is. A server of such a backend that
// is not named has the weight of its configuration and takes its part beside them.
//
// # Weights
//
// HAProxy takes whole weights from 0 to 256 for each server. A site's share goes
// evenly to its servers that can take requests, by largest remainder in as many
// units as the greatest weight allows, so that shares are met to 1/256 or better
// and none above 0 becomes 0. A server that is down has the weight of those beside
// it, so that it is not left out when it returns; the next look spreads the share
// again. Weights that rise are set before those that fall, so that there is no
// moment without any. The backend needs an algorithm with changing weights
// (roundrobin, leastconn, random, or a consistent hash), else HAProxy refuses.
//
// # States
//
// Of a server: usable; down, by HAProxy's checks; in maintenance or draining. A
// drain is HAProxy's state drain, in which a server keeps its running requests and
// gets those of its sticky sessions only; servers with a cookie are put into
// maintenance instead, in which running requests go on too and sessions get
// another server. Sessions that a stick table keeps can't be seen from outside and
// go on in a drain.
//
// What was set lives in HAProxy's memory. With Options.StateFile all servers'
// states are written to the file that its server-state-file names, whenever
// something was set, so that a reload or a restart begins with them; without, or if
// it was lost, the Keeper finds them gone at its next look and sets them again.
//
// # Failures
//
// A socket that can't be reached, or an answer that breaks off, is
// router.ErrUnreachable: each question is a connection of its own, so that there is
// nothing to restore after it. What HAProxy refuses is ErrRefused; what was set of
// that table is set back.
package haproxy
