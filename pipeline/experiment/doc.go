// Package experiment runs the papers' evaluations again, without a bus: what a
// generator makes up goes through the rollups of the aggregator into windows,
// and these through strategies (pipeline/whatif). So far there is one, that of
// placement (PAPERS §1.4, §1.5).
//
// What is run stands in parameters that were fixed before the first run
// (infra/examples/experiment): cases, friend models, which of them judges the
// targets, and what is varied. Each seed is another population and day; its
// windows are made once and played through all cases and strategies.
//
// The same parameters and seeds give the same figures, byte for byte, whatever
// the number of processors: seeds run side by side, and what they come to is put
// together in order.
//
// Failures: parameters that are none ([ErrParams]), measured tables that cannot
// be used ([ErrData]), and the context's end. A target that isn't reached is no
// failure: the result says so.
package experiment
