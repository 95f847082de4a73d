// Package line is the queue in front of one server (DESIGN §4.3, PAPERS §2.3 and
// §2.4): requests with deadlines and penalties, in the order that a [Discipline]
// gives them, and the questions that the paper's three algorithms ask of a queue
// before they choose a server. It is pure: it reads no clock, and every answer is a
// function of the calls before.
//
//	A1  Increase of all lines, then Insert into the least   Deadline
//	A2  Len of all lines, then Insert into the shortest     Cheapest
//	A3  Spread of all lines, then Insert into the greatest  Lateness
//	iCBS                                                    Cost
//
// [Plain] is a line as the paper has it, which walks through all that wait at every
// question. [Line] says the same, within 1e-9 of the magnitude, and the same order
// to the letter, without that.
//
// # What makes it fast
//
// A request k with S static and D dynamic bytes ahead starts at σ = now + max(0, w_k),
// w_k = Bias + a·S + b·D, and is late by max(0, σ − d_k). Where no wait is negative,
// that is
//
//	max(0, t − u_k)    u_k = d_k − a·S_k − b·D_k,  t = now + Bias
//
// and every change that is not the request's own is a shift of t:
//
//	one request more ahead   all behind it by the same δ = a·s + b·d
//	one request less ahead   the same, backwards
//	time that passes         everyone by that
//	another bias             everyone by that
//
// So the line is cut into blocks of about √n, S and D are counted from the block's
// beginning, and Σ p_k·max(0, t − u_k) of a block is t·Σp − Σp·u over the u_k < t: read
// at one place of the block's items in order of u, which time moves along by little. A
// change of the line makes the sums of one block anew. All of a block's numbers count
// from its first deadline and its first byte, and none is carried on from change to
// change, so nothing drifts, and instants since 1970 lose no digits.
//
// New weights a and b, which a server learns with every completion, change the order
// of u. It is made anew only of blocks that have late and timely requests alike, and
// only when it was worth it: the first few questions walk through the block instead, as
// does one in whose block the learned wait changes its sign.
//
// Equal deadlines stay in the order in which they came. Instants are whole ns, and so
// are service times, so that both forms compare the very same numbers.
//
// # Failures
//
// There are none: what no quantity can be counts as 0, see [Item]. Nothing but a line
// that grows allocates.
package line
