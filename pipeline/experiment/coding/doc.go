// Package coding runs the evaluation of the TOFEC paper again (PAPERS §3), without a
// bus: a coder in front of a store whose delays are made up (package simcoder, over the
// live coder's own queue and choosers), under every static code and every policy of
// kind coding, at loads from 5 to 95 per cent of what (1,1) carries.
//
// What is run stands in parameters that were fixed before the first run
// (infra/examples/experiment/coding.yaml). A seed is one draw of arrivals and of the
// luck of each request; all policies of a seed and load meet the same. The same
// parameters and seeds give the same figures, byte for byte, whatever the number of
// processors.
//
// # Policies
//
//   - (n,k), each with k up to k_max and n up to r_max·k: a static code. (2,1) is the
//     paper's replication. At a load their least mean is the envelope.
//   - greedy, and hedge (n,k), as coders know them.
//   - tofec: thresholds of package threshold, corrected for the connections, told the
//     store's model. Of log-normal stores there is none to tell.
//   - tofec, learned: the decider's policy in the loop, begun from a wrong model.
//   - tofec, by arrivals: its backlog is smoothed at arrivals, as the paper does, and
//     not over time, as coders do.
//   - tofec, the paper's: its thresholds as they are, of a queue M/M/1, by arrivals.
//
// # Failures
//
// Parameters that are none ([ErrParams]), sizes that cannot be used ([ErrSizes]), and
// the context's end. A target that isn't reached is no failure: the result says so.
package coding
