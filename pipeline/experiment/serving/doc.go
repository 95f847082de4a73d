// Package serving runs the evaluation that the paper on request distribution with
// perceptrons announces and does not give (PAPERS §2), without a bus: clients, a
// first-level switch, zones with a second-level switch each, servers of a CPU and a disk,
// databases for dynamic requests (package simservers, over the live switch's own pool and
// the decider's own switching rule), under every policy of kind servers, with all servers
// on and with the rule that switches them.
//
// What is run stands in parameters (infra/examples/experiment/servers.yaml), all of them
// ours: the paper gives none. A seed is one draw of arrivals, pages, sizes and of the time
// that each request takes at each station; all policies of a seed meet the same. The same
// parameters and seeds give the same figures, byte for byte, whatever the number of
// processors.
//
// A run costs what its servers cost while they are on, plus the penalties of the requests
// that were late. Beside it stands a bound that no policy can get below, not even one that
// knows all requests beforehand (package clairvoyant).
//
// # Failures
//
// Parameters that are none ([ErrParams]), recordings that cannot be used ([ErrData]), and
// the context's end. A target that isn't reached is no failure: the result says so.
package serving
