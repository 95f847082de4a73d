// Package fit finds the delay model of a store (PAPERS §3.2) from its chunk tasks, by
// maximum likelihood of censored samples. It is pure: histograms go in, four parameters
// with their intervals come out.
//
// # Likelihood
//
// A task of B megabytes takes Delta(B) + Exp(mean Psi(B)). One that was cancelled after
// c lasted at least c: it adds exp(−(c − Delta)/Psi) to the likelihood, where one that
// ended after d adds the density at d. To leave the cancelled ones out would be wrong:
// those that win a race are the short ones, and at (12,6) their mean shows a third of Psi.
//
// For tasks of one size, with N ended and E the time that all tasks of that size, ended
// and cancelled, spent beyond Delta, the likelihood is greatest at Psi = E/N. Over sizes
// the line Psi(B) that makes it greatest is found by weighted least squares of E/N with
// weights N/Psi², made again with the new Psi until nothing changes (Fisher's scoring).
// Delta of one size is its least delay, less the Psi/n by which the least of n
// exponentials lies above their beginning on average; its standard deviation is Psi/n.
// Over sizes the line Delta(B) is a weighted least square too. Parameters are 0 or more.
//
// # What data can't tell
//
// If all tasks have one size, only Delta(B) and Psi(B) at that size are known, not how
// either divides into a part that grows with B and one that does not. A weak prior
// around the last fit, with standard deviations as large as its parameters, decides
// that and only that: along what the data tell it weighs nothing. [Result.Untold]
// names the parameters that rest on it.
//
// # Outliers
//
// A delay beyond Delta + 4·Psi counts as one of at least that much: under the model
// nothing is lost by it but a little precision, and a time-out of a minute weighs no
// more than 4·Psi. Delays that lie below all others by a gap that has a chance of less
// than one in a million are left out, up to a hundredth of the samples: an answer from
// some cache is not the store's. Failed tasks are no samples at all. What was left out
// or cut is counted.
//
// # States and failures
//
// With fewer than Options.MinSamples ended tasks, or none of one size with at least 20,
// the last fit stays, and the result says so (Kept). Nothing fails.
//
// Sizes within a factor of two of each other under one code come as one [Point] with
// their mean and their least. The least delay then goes with the least size, as if sizes
// were spread evenly, and the time beyond Delta with the mean: Delta is linear, so that
// those of many sizes add up to that of their mean. A rare size far below the others
// puts Delta off by at most what Delta grows by from it to them.
package fit
