// Package splitting runs the evaluation of the request-splitting paper again
// (PAPERS §4.3), without a bus: applications like the paper's and random ones
// (pipeline/experiment/multitier) under its faults, with every policy of kind split
// in turn, and the greedy split against the optimum on random instances.
//
// What is run stands in parameters that were fixed before the first run
// (infra/examples/experiment/split.yaml). A seed is one draw of arrivals, service
// times and bad spells; all policies of a seed meet the same arrivals and faults.
// The same parameters and seeds give the same figures, byte for byte, whatever the
// number of processors.
//
// Failures: parameters that are none ([ErrParams]), recordings that cannot be used
// ([ErrData]), and the context's end. A target that isn't reached is no failure: the
// result says so.
package splitting
