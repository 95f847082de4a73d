// Package threshold says at which backlog a coder should go over to another code
// (PAPERS §3.2 to §3.4). It is pure: a delay model, a size, a number of connections
// and limits go in; two lists of backlogs come out.
//
// # Model
//
// A task of B megabytes (1 MB = 10⁶ B) takes Delta(B) + Exp(mean Psi(B)),
// both linear in B. A request of J megabytes under code (n,k) is n tasks of J/k, done
// at the k-th success; the rest is cancelled. With H the harmonic numbers and r = n/k:
//
//	U(n,k) = n·Delta(J/k) + k·Psi(J/k)                     connections × time
//	S(n,k) = Delta(J/k) + Psi(J/k)·(H(n) − H(n−k))         delay without a queue
//	C(n,k) = L / U(n,k)                                    requests a unit of time
//
// # Thresholds
//
// Both kinds come from the same question: which code is best while q requests wait?
// k and n fall as q rises. K[j−1] is the backlog at which the best k is j+½, N[j−1]
// that at which the best n is j+½. A coder takes
// k = 1 + #{j : q < K[j−1]} and n the same way, within k ≤ n ≤ RMax·k.
//
// [Uncorrected] is the paper's: the queue is M/M/1 with a server as fast as all L
// connections together, and S is smoothed to Delta + Psi·ln(r/(r−1)). Setting the
// derivatives of S + Wq by k and r to zero and dividing them leaves r as a function of
// k alone, solved by bisection; Q follows.
//
// [Corrected] is for L connections. One request holds U/S of them on average, so the
// queue has c = L·S/U servers, each with load rho = λU/L. In M/M/1 a request waits
// with probability rho; with c servers it waits only when all are busy, and at equal
// rho that is far rarer. Sakasegawa's closed form of the M/M/c wait, exact for c = 1
// and within a few per cent of Erlang C otherwise,
//
//	Wq = (U/L)·rho^(e−1)/(1−rho),  e = √(2(c+1)),  so that  Q = λ·Wq = rho^e/(1−rho)
//
// takes the place of rho/(1−rho), and the Allen-Cunneen factor (1 + v²)/2 takes in
// that a request is not exponential: v is the coefficient of variation of the k-th of
// n.
//
// Where n > L/2 that is not enough. A request that meets a single other one finds L − n
// connections idle: it is admitted at once, and is later all the same, for it begins the
// rest of its tasks one by one as those of the other one end. That is of the first order
// in λ, and a queue of c servers doesn't have it. Let X(a) be by how much it is later if
// the other one's age is a, by the mean times at which tasks end (meeting.go). Then, with
// A = (1 + v²)·∫X(a)da,
//
//	Wq = λA + (U/L)·(1+v²)/2·rho²/(1−rho)
//
// The second term is what a request waits for its first connection behind two others, and
// the backlog counts nothing else: Q = λ·(Wq − λA). For n ≥ L, where a single other one
// leaves no connection, the wait for its first end counts too. Over one connection this
// is the M/G/1 of Pollaczek and Khinchine. Without the first term (12,6) over 16
// connections is 4 to 5 % faster by formula than it is at a quarter of its capacity, and
// its backlog thrice what it is: it was taken up to twice the load at which it ceases to
// be best.
//
// Delays agree with a simulation of static codes within a few per cent, up to 0.4 of the
// capacity within three (corrected_test.go, meeting_test.go). Codes are compared as they
// are, in whole numbers and with the harmonic numbers, because codes without a spare
// chunk, (k,k), are often the best ones, and ln(r/(r−1)) is infinite for them. The codes
// that are best at some rate are the lower envelope of S + Wq. Where it goes over from one
// code to a smaller one, the backlog of the one that is left is some times that of the
// one that is taken: between them any threshold holds both, and the geometric mean is as
// far from each.
//
// Near no load backlogs are so small that an average over seconds doesn't tell them apart,
// and comes down to them only long after the load has fallen. The floor is what is left
// of the backlog at nine tenths of the capacity after four averaging times. All rates at
// which the best code's backlog is below it get one code, that of the least mean delay over
// them. For the default write model that is (9,5), not (12,6), which is best up to 2 % of
// the capacity and 5 % worse than the best at 5 %; for the default read model (12,6).
//
// Where k is fixed (KMin = KMax: an object that lies in n stores, any k of which are
// needed), only n is chosen, in the same two ways; below k no backlog reaches.
//
// Nothing else is set: everything follows from the model, J and L.
//
// Products that are added are rounded first (float64(a·b) + c): without it a compiler
// may fuse them, and another machine would decide by other last bits (DESIGN §3.3).
//
// # Failures
//
// [Model.Validate] and [Limits.Validate] say what cannot be used ([ErrInvalid]).
// Nothing else fails: what is best nowhere gets a threshold of zero.
package threshold
