// Package perceptron estimates how long a server will take for a request and how long a
// request will wait in its queue (PAPERS §2.2).
//
// A [Neuron] is relu(w1·x1 + w2·x2 + w3). A [Model] holds those of one server: for the
// service time one for each size class, over (size / greatest size of the class, 0 static
// or 1 dynamic, 1), and for the waiting time one over the sums of static and dynamic bytes
// ahead, both divided by a running maximum. [Pool] takes what the models of other servers
// have in common, for a server that is new (PROBLEMS P30).
//
// # Rules
//
// The paper's rule, [Gradient] with NoBias, has two faults: a neuron whose sum is negative
// is never changed again, and a small static request is always estimated as 0. Its error
// along x1 also shrinks slowly, since x1 and the constant are nearly parallel within a
// class. [Recursive], the default, keeps the information of the last fifty or so requests
// (recursive least squares with forgetting) and needs three different requests for three
// weights, wherever it starts. [Normalised] is the normalised LMS rule.
//
// # States and failures
//
// A model is not safe for concurrent use. It keeps no time and draws nothing: equal calls
// give equal bits. Values that are no times or sizes (negative, not finite) are not
// learned. Estimating and learning allocate nothing.
package perceptron
