// Package delays draws how long the tasks of a simulated store take (PAPERS §3.2).
// It is pure: a task's delay follows from the luck of its request, the task's place
// in it and its size.
//
// # Laws
//
//   - Exponential: Delta(B) + Psi(B)·Exp(1), the model of PAPERS §3.2.
//   - Lomax: the same with a heavy tail of mean 1 in place of Exp(1); its survival
//     falls as a power, Shape, so that moments from Shape on do not exist.
//   - Lognormal: median (Median + MedianPerMB·B), spread Sigma, and no less than Floor.
//
// # Luck
//
// Each request has one number of luck, and its task i draws from that number and i
// alone. Whatever the code and the queue, task i of a request then takes the same
// time for its size: policies that are compared meet the same luck, and their
// difference shows in fewer requests than with draws in order of time.
//
// With Correlation the normal scores of a request's tasks share a part: the
// correlation of any two is that number, and the law of one task is as it was (a
// Gaussian copula). It stands for the shared key of PAPERS §3.2, whose chunks come
// from one object and so from the same servers.
//
// # Failures
//
// [Law.Validate] says what cannot be drawn from ([ErrLaw]); nothing else fails.
package delays
